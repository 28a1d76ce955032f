#include "sim/scripted_server.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "core/base/slice.h"
#include "core/io/turn.h"

namespace rq::sim {

class ScriptedServer::Shard final : public io::Shard {
 public:
  Shard(ScriptedServer& owner, io::Host& host) : owner_(owner), host_(host) {
    owner_.on_begin();
    io::bind<&Shard::on_listen>(listen_, this);
    io::bind<&Shard::on_accept>(accept_, this);
  }
  void expire(Now) override {
    if (begun_) return;
    begun_ = true;
    host_.net.listen(listen_, owner_.address_);
  }
  void settle(Now now) override {
    if (listener_ != io::StreamId::none && !accept_.in_flight) host_.net.accept(accept_, listener_);
    for (const auto& connection : connections_) connection->submit(now.mono);
    std::erase_if(connections_, [](const auto& connection) { return connection->over(); });
  }
  Instant next_deadline() const override {
    if (!begun_) return Instant{};
    Instant next = Instant::never();
    for (const auto& connection : connections_) next = std::min(next, connection->next_deadline());
    return next;
  }

 private:
  class Connection final : public Conversation {
   public:
    Connection(Shard& of, io::StreamId stream) : shard_(of), stream_(stream) {
      io::bind<&Connection::on_read>(read_, this);
      io::bind<&Connection::on_write>(write_, this);
    }
    void say(std::string_view bytes, std::int64_t late_ns) override {
      if (bytes.empty()) return;
      const Instant due = shard_.host_.clock.now() + late_ns;
      if (!said_.empty() && said_.back().due >= due) {
        said_.back().bytes.append(bytes);
      } else {
        said_.push_back({due, std::string(bytes)});
      }
    }
    void say_last(std::string_view bytes, std::int64_t late_ns) override {
      say(bytes, late_ns);
      last_ = !bytes.empty();
    }
    void close() override {
      if (std::exchange(closed_, true)) return;
      shard_.owner_.on_close(*this);
      shard_.host_.net.close(stream_);
    }
    bool closed() const override { return closed_; }

    void submit(Instant now) {
      if (closed_) return;
      if (!write_.in_flight && sending_.empty() && !said_.empty() && said_.front().due <= now) {
        sending_ = std::move(said_.front().bytes);
        said_.pop_front();
      }
      if (!write_.in_flight && !sending_.empty()) {
        const ConstBuf rest = bytes_of(sending_);
        shard_.host_.net.write_some(write_, stream_, std::span(&rest, 1));
      }
      if (!read_.in_flight) shard_.host_.net.read_some(read_, stream_, shard_.pool_);
    }
    Instant next_deadline() const {
      const bool waits = !closed_ && !write_.in_flight && sending_.empty() && !said_.empty();
      return waits ? said_.front().due : Instant::never();
    }
    bool over() const { return closed_ && !read_.in_flight && !write_.in_flight; }

   private:
    struct Said {
      Instant due;
      std::string bytes;
    };
    void on_read(io::ReadOp& op) {
      const Slice data = std::move(op.data);
      if (closed_) return;
      if (op.error) return close();
      input.append(text_of(data.bytes()));
      shard_.owner_.on_bytes(*this, shard_.host_.clock.now());
    }
    void on_write(io::Op& op) {
      if (closed_) return;
      if (op.error) return close();
      sending_.erase(0, op.value);
      if (last_ && sending_.empty() && said_.empty()) close();
    }

    Shard& shard_;
    io::StreamId stream_;
    io::ReadOp read_;
    io::Op write_;
    std::deque<Said> said_;
    std::string sending_;
    bool last_ = false, closed_ = false;
  };

  void on_listen(io::Op& op) {
    RQ_CHECK(!op.error);
    listener_ = op.stream();
  }
  void on_accept(io::Op& op) {
    if (op.error) return;
    connections_.push_back(std::make_unique<Connection>(*this, op.stream()));
    owner_.on_open(*connections_.back());
  }

  ScriptedServer& owner_;
  io::Host& host_;
  ChunkPool pool_{16 * 1024, 2};
  io::Op listen_, accept_;
  io::StreamId listener_ = io::StreamId::none;
  std::deque<std::unique_ptr<Connection>> connections_;
  bool begun_ = false;
};

ScriptedServer::ScriptedServer(World& world, SimDisk& disk, std::string_view name, std::string address)
    : address_(std::move(address)), process_(world.make_process(name, disk, [this](io::Host& host, io::Turn&) {
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(*this, host),
                                                                [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
      })) {}

}  // namespace rq::sim
