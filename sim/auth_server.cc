#include "sim/auth_server.h"

#include <fmt/format.h>

#include <deque>
#include <memory>

#include "core/base/slice.h"
#include "core/io/turn.h"

namespace rq::sim {

class AuthServer::Shard final : public io::Shard {
 public:
  Shard(AuthServer& owner, io::Host& host) : owner_(owner), host_(host) {
    io::bind<&Shard::on_listen>(listen_, this);
    io::bind<&Shard::on_accept>(accept_, this);
  }
  void expire(Now) override {
    if (begun_) return;
    begun_ = true;
    host_.net.listen(listen_, owner_.address_);
  }
  void settle(Now) override {
    if (listener_ != io::StreamId::none && !accept_.in_flight) host_.net.accept(accept_, listener_);
    for (const auto& connection : connections_) connection->submit();
    std::erase_if(connections_, [](const auto& connection) { return connection->over(); });
  }
  Instant next_deadline() const override { return begun_ ? Instant::never() : Instant{}; }

 private:
  struct Connection {
    Connection(Shard& of, io::StreamId id) : shard(of), stream(id) {
      io::bind<&Connection::on_read>(read, this);
      io::bind<&Connection::on_write>(write, this);
    }
    void on_read(io::ReadOp& op) {
      const Slice data = std::move(op.data);
      if (closed) return;
      if (op.error) return close();
      if (!answered) head.append(text_of(data.bytes()));
      if (answered || head.find("\r\n\r\n") == std::string::npos) return;
      answered = true;
      shard.owner_.heads.push_back(head);
      reply = shard.owner_.answer ? shard.owner_.answer(head) : status(500);
    }
    void on_write(io::Op& op) {
      if (closed) return;
      if (op.error) return close();
      done += op.value;
      if (done == reply.size()) close();
    }
    void submit() {
      if (closed) return;
      if (!write.in_flight && done < reply.size()) {
        const ConstBuf rest = bytes_of(reply).subspan(done);
        shard.host_.net.write_some(write, stream, std::span(&rest, 1));
      }
      if (!read.in_flight) shard.host_.net.read_some(read, stream, shard.pool_);
    }
    void close() {
      closed = true;
      shard.host_.net.close(stream);
    }
    bool over() const { return closed && !read.in_flight && !write.in_flight; }

    Shard& shard;
    io::StreamId stream;
    io::ReadOp read;
    io::Op write;
    std::string head, reply;
    std::size_t done = 0;
    bool answered = false, closed = false;
  };

  void on_listen(io::Op& op) {
    RQ_CHECK(!op.error);
    listener_ = op.stream();
  }
  void on_accept(io::Op& op) {
    if (!op.error) connections_.push_back(std::make_unique<Connection>(*this, op.stream()));
  }

  AuthServer& owner_;
  io::Host& host_;
  ChunkPool pool_{16 * 1024, 2};
  io::Op listen_, accept_;
  io::StreamId listener_ = io::StreamId::none;
  std::deque<std::unique_ptr<Connection>> connections_;
  bool begun_ = false;
};

AuthServer::AuthServer(World& world, SimDisk& disk, std::string_view name, std::string address)
    : address_(std::move(address)), process_(world.make_process(name, disk, [this](io::Host& host, io::Turn&) {
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(*this, host),
                                                                [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
      })) {}

std::string AuthServer::status(int code, std::string_view body) {
  return fmt::format("HTTP/1.1 {} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", code, body.size(),
                     body);
}
std::string AuthServer::document(std::string_view json) { return status(200, json); }

std::string AuthServer::grant(std::string_view permissions, std::string_view topic, std::string_view channels, std::int64_t ttl) {
  return document(fmt::format(R"({{"ttl":{},"identity":"someone","identity_url":"http://who",)"
                              R"("authorizations":[{{"permissions":{},"topic":"{}","channels":{}}}]}})",
                              ttl, permissions, topic, channels));
}

}  // namespace rq::sim
