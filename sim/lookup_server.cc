#include "sim/lookup_server.h"

#include <deque>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/slice.h"
#include "core/io/turn.h"

namespace rq::sim {
namespace {

constexpr std::string_view kIdentity =
    R"({"broadcast_address":"127.0.0.1","hostname":"lookup","http_port":4161,"tcp_port":4160,"version":"1.3.0"})";

}  // namespace

class LookupServer::Shard final : public io::Shard {
 public:
  Shard(LookupServer& owner, io::Host& host) : owner_(owner), host_(host) {
    owner_.registered_.clear();
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
      shard.owner_.registered_[this];
    }
    void on_read(io::ReadOp& op) {
      const Slice data = std::move(op.data);
      if (closed) return;
      if (op.error) return close();
      input.append(text_of(data.bytes()));
      if (!greeted) {
        if (input.size() < 4) return;
        if (!input.starts_with("  V1")) return close();
        greeted = true;
        input.erase(0, 4);
      }
      while (!closed && take_command()) {
      }
    }
    bool take_command() {
      const std::size_t end = input.find('\n');
      if (end == std::string::npos) return false;
      std::string command = input.substr(0, end);
      std::size_t used = end + 1;
      if (command == "IDENTIFY") {
        if (input.size() < used + 4) return false;
        const std::uint32_t size = load32(bytes_of(input).data() + used);
        if (input.size() < used + 4 + size) return false;
        command += ' ';
        command += input.substr(used + 4, size);
        used += 4 + size;
      }
      input.erase(0, used);
      obey(command);
      return true;
    }
    void obey(const std::string& command) {
      const std::size_t number = shard.owner_.commands.size();
      shard.owner_.commands.push_back(command);
      if (shard.owner_.cut && shard.owner_.cut(number)) return close();
      std::set<std::string>& names = shard.owner_.registered_[this];
      if (command.starts_with("REGISTER ")) {
        const std::string name = command.substr(9);
        names.insert(name);
        names.insert(name.substr(0, name.find(' ')));
      } else if (command.starts_with("UNREGISTER ")) {
        names.erase(command.substr(11));
      }
      std::string good = framed(command.starts_with("IDENTIFY") ? kIdentity : "OK");
      output += shard.owner_.answer ? shard.owner_.answer(number, command, good) : good;
    }
    void on_write(io::Op& op) {
      if (closed) return;
      if (op.error) return close();
      sending.erase(0, op.value);
    }
    void submit() {
      if (closed) return;
      if (!write.in_flight && sending.empty()) std::swap(sending, output);
      if (!write.in_flight && !sending.empty()) {
        const ConstBuf rest = bytes_of(sending);
        shard.host_.net.write_some(write, stream, std::span(&rest, 1));
      }
      if (!read.in_flight) shard.host_.net.read_some(read, stream, shard.pool_);
    }
    void close() {
      closed = true;
      shard.owner_.registered_.erase(this);
      shard.host_.net.close(stream);
    }
    bool over() const { return closed && !read.in_flight && !write.in_flight; }

    Shard& shard;
    io::StreamId stream;
    io::ReadOp read;
    io::Op write;
    std::string input, output, sending;
    bool greeted = false, closed = false;
  };

  void on_listen(io::Op& op) {
    RQ_CHECK(!op.error);
    listener_ = op.stream();
  }
  void on_accept(io::Op& op) {
    if (!op.error) connections_.push_back(std::make_unique<Connection>(*this, op.stream()));
  }

  LookupServer& owner_;
  io::Host& host_;
  ChunkPool pool_{16 * 1024, 2};
  io::Op listen_, accept_;
  io::StreamId listener_ = io::StreamId::none;
  std::deque<std::unique_ptr<Connection>> connections_;
  bool begun_ = false;
};

LookupServer::LookupServer(World& world, SimDisk& disk, std::string_view name, std::string address)
    : address_(std::move(address)), process_(world.make_process(name, disk, [this](io::Host& host, io::Turn&) {
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(*this, host),
                                                                [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
      })) {}

std::set<std::string> LookupServer::names() const {
  std::set<std::string> all;
  for (const auto& [connection, names] : registered_) all.insert(names.begin(), names.end());
  return all;
}

std::string LookupServer::framed(std::string_view text) {
  std::string out;
  put32(out, static_cast<std::uint32_t>(text.size()));
  return out.append(text);
}

}  // namespace rq::sim
