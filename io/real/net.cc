#include "io/real/net.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/real/errors.h"
#include "io/real/pool.h"

namespace rq::real {
namespace {

constexpr int kBacklog = 1024;
constexpr int kKeepAliveSeconds = 15;
constexpr std::size_t kVectorMax = 1024;  // IOV_MAX

std::uint32_t index_of(io::StreamId id) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id)) - 1; }
io::StreamId make_id(std::uint32_t generation, std::uint32_t index) {
  return static_cast<io::StreamId>(std::uint64_t{generation} << 32 | (std::uint64_t{index} + 1));
}

int open_socket(const SocketAddress& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // Accepted sockets inherit all of these from their listener.
  const int on = 1, seconds = kKeepAliveSeconds;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  return fd;
}

bool would_block(int os) { return os == EAGAIN || os == EWOULDBLOCK; }

}  // namespace

// A host name on its way to an address; the resolver blocks, so a worker asks it.
struct RealNet::Lookup final : Job {
  Lookup(RealNet& owner, io::Op& connect, Instant until) : net(owner), op(connect), deadline(until) {}
  void execute() noexcept override {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
    // One address is tried: of IPv4 when there is one, since many names have an IPv6 address that nothing listens on.
    const addrinfo* chosen = found;
    while (chosen != nullptr && chosen->ai_family != AF_INET) chosen = chosen->ai_next;
    if (chosen == nullptr) chosen = found;
    std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
    address.length = chosen->ai_addrlen;
    known = true;
    ::freeaddrinfo(found);
  }
  void finish() override { net.finish_lookup(*this); }
  RealNet& net;
  io::Op& op;
  Instant deadline;
  std::string host, port;
  SocketAddress address;
  bool submitted = false, known = false;
};

RealNet::RealNet(io::Turn& turn) : turn_(turn) {}

RealNet::~RealNet() {
  for (const Stream& stream : streams_) {
    if (stream.fd >= 0) ::close(stream.fd);
  }
}

// ---- handles

const RealNet::Stream* RealNet::find(io::StreamId id) const {
  const std::uint32_t index = index_of(id);
  if (index >= streams_.size()) return nullptr;
  const Stream& stream = streams_[index];
  return stream.kind != Kind::free && make_id(stream.generation, index) == id ? &stream : nullptr;
}

RealNet::Stream* RealNet::find(io::StreamId id) { return const_cast<Stream*>(static_cast<const RealNet*>(this)->find(id)); }

io::StreamId RealNet::add(int fd, Kind kind) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(streams_.size()));
    streams_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Stream& stream = streams_[index];
  const io::StreamId id = make_id(stream.generation, index);
  if (!ready_.add(fd, static_cast<std::uint64_t>(id))) return io::StreamId::none;
  free_.pop_back();
  stream.fd = fd;
  stream.kind = kind;
  // A new stream may be written at once and has usually something to read; only an attempt costs anything.
  stream.readable = kind == Kind::stream;
  stream.writable = kind == Kind::stream;
  stream.hung_up = false;
  return id;
}

void RealNet::drop(std::uint32_t index) {
  Stream& stream = streams_[index];
  ::close(stream.fd);
  stream.fd = -1;
  stream.kind = Kind::free;
  ++stream.generation;
  stream.read = nullptr;
  stream.pool = nullptr;
  stream.write = nullptr;
  stream.entry = nullptr;
  stream.deadline = Instant::never();
  stream.unsent = {};
  stream.peer = {};
  stream.tls.reset();
  stream.handshake = nullptr;
  stream.plain = 0;
  free_.push_back(index);
}

void RealNet::stale(io::Op& op, const char* name) {
  ++counters_.stale_calls;
  turn_.complete(op, {io::Errc::cancelled, 0, name});
}

// ---- listeners and connects

void RealNet::listen(io::Op& op, std::string_view text) {
  io::submit(op);
  const std::optional<SocketAddress> address = parse_address(text);
  if (!address) return turn_.complete(op, {io::Errc::bad_address, 0, "listen"});
  const int fd = open_socket(*address);
  const int on = 1;
  if (fd < 0) return turn_.complete(op, error_from(errno, "socket"));
  io::Error error{};
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, address->get(), address->length) != 0) {
    error = error_from(errno, "bind");
  } else if (::listen(fd, kBacklog) != 0) {
    error = error_from(errno, "listen");
  }
  const io::StreamId id = error ? io::StreamId::none : add(fd, Kind::listener);
  if (!error && id == io::StreamId::none) error = error_from(errno, "epoll");
  if (error) ::close(fd);
  turn_.complete(op, error, static_cast<std::uint64_t>(id));
}

void RealNet::accept(io::Op& op, io::StreamId id) {
  io::submit(op);
  Stream* listener = find(id);
  if (listener == nullptr || listener->kind != Kind::listener) return stale(op, "accept");
  RQ_CHECK(listener->entry == nullptr);
  listener->entry = &op;
  if (listener->readable) try_accept(*listener);
}

void RealNet::try_accept(Stream& listener) {
  for (;;) {
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    const int fd = ::accept4(listener.fd, peer.get(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && would_block(errno)) {
      listener.readable = false;
      return;
    }
    io::Op& op = *listener.entry;
    if (fd < 0) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;  // that connection's own fault
      io::Error error = error_from(errno, "accept");
      error.code = io::Errc::no_handles;
      listener.entry = nullptr;
      return turn_.complete(op, error);
    }
    const io::StreamId id = add(fd, Kind::stream);  // the reference to `listener` stays valid: a deque
    if (id == io::StreamId::none) {
      ::close(fd);
      continue;
    }
    find(id)->peer = format_address(peer);
    ++counters_.accepted;
    listener.entry = nullptr;
    return turn_.complete(op, {}, static_cast<std::uint64_t>(id));
  }
}

void RealNet::connect(io::Op& op, std::string_view text, Instant deadline) {
  io::submit(op);
  if (const std::optional<SocketAddress> address = parse_address(text)) return begin_connect(op, *address, deadline);
  const std::optional<HostPort> name = parse_host_port(text);
  if (!name || pool_ == nullptr) return turn_.complete(op, {io::Errc::bad_address, 0, "connect"});
  lookups_.push_back(std::make_unique<Lookup>(*this, op, deadline));
  lookups_.back()->host = name->host;
  lookups_.back()->port = name->port;
  submit_lookups();
}

void RealNet::submit_lookups() {
  for (std::size_t i = 0; i < std::min(lookups_.size(), kLookupsMax); ++i) {
    if (!std::exchange(lookups_[i]->submitted, true)) pool_->submit(*lookups_[i]);
  }
}

void RealNet::finish_lookup(Lookup& lookup) {
  const auto at = std::find_if(lookups_.begin(), lookups_.end(), [&](const auto& each) { return each.get() == &lookup; });
  const std::unique_ptr<Lookup> done = std::move(*at);
  lookups_.erase(at);
  submit_lookups();
  if (!done->known) return turn_.complete(done->op, {io::Errc::not_found, 0, "connect"});
  begin_connect(done->op, done->address, done->deadline);
}

void RealNet::begin_connect(io::Op& op, const SocketAddress& address, Instant deadline) {
  const int fd = open_socket(address);
  if (fd < 0) return turn_.complete(op, error_from(errno, "socket"));
  int result = 0;
  do result = ::connect(fd, address.get(), address.length);
  while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EINPROGRESS) {
    const io::Error error = error_from(errno, "connect");
    ::close(fd);
    return turn_.complete(op, error);
  }
  const io::StreamId id = add(fd, Kind::connecting);
  if (id == io::StreamId::none) {
    ::close(fd);
    return turn_.complete(op, {io::Errc::no_handles, errno, "connect"});
  }
  Stream& stream = *find(id);
  stream.entry = &op;
  stream.deadline = deadline;
  stream.peer = format_address(address);
  connecting_.push_back(id);
}

void RealNet::finish_connect(io::StreamId id, io::Error error) {
  connecting_.erase(std::find(connecting_.begin(), connecting_.end(), id));
  Stream& stream = *find(id);
  io::Op& op = *stream.entry;
  stream.entry = nullptr;
  stream.deadline = Instant::never();
  if (error) {
    drop(index_of(id));
    return turn_.complete(op, error);
  }
  stream.kind = Kind::stream;
  stream.readable = stream.writable = true;
  ++counters_.connected;
  turn_.complete(op, {}, static_cast<std::uint64_t>(id));
}

Instant RealNet::next_deadline() const {
  Instant first = Instant::never();
  for (const io::StreamId id : connecting_) first = std::min(first, find(id)->deadline);
  for (const io::StreamId id : handshaking_) first = std::min(first, find(id)->deadline);
  return first;
}

void RealNet::expire(Instant now) {
  for (std::size_t i = 0; i < connecting_.size();) {
    const io::StreamId id = connecting_[i];
    if (find(id)->deadline > now) {
      ++i;
    } else {
      finish_connect(id, {io::Errc::timed_out, 0, "connect"});
    }
  }
  for (std::size_t i = 0; i < handshaking_.size();) {
    const io::StreamId id = handshaking_[i];
    if (find(id)->deadline > now) {
      ++i;
    } else {
      finish_handshake(id, {io::Errc::timed_out, 0, "tls"});
    }
  }
}

// ---- streams

void RealNet::read_some(io::ReadOp& op, io::StreamId id, ChunkPool& pool) {
  io::submit(op);
  op.data = {};
  Stream* stream = find(id);
  if (stream == nullptr || stream->kind != Kind::stream) return stale(op, "read_some");
  RQ_CHECK(stream->read == nullptr);
  stream->read = &op;
  stream->pool = &pool;
  if (stream->readable || stream->tls != nullptr) try_read(*stream);
}

void RealNet::try_read(Stream& stream) {
  if (stream.tls != nullptr) return try_read_tls(stream);
  Chunk* chunk = stream.pool->take();
  ++counters_.reads;
  ssize_t got = 0;
  do got = ::recv(stream.fd, chunk->data(), chunk->capacity, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  const int os = errno;
  if (got <= 0) stream.pool->give_back(chunk);
  if (got < 0 && would_block(os)) {
    ++counters_.reads_empty;
    stream.readable = false;
    return;
  }
  io::ReadOp& op = *stream.read;
  stream.read = nullptr;
  if (got < 0) return turn_.complete(op, stream_error(os, "read_some"));
  if (got == 0) return turn_.complete(op, {io::Errc::eof, 0, "read_some"});
  // Less than asked for: the socket is empty, and more data is a new edge (epoll(7)). An end that was already seen is none.
  if (static_cast<std::uint32_t>(got) < chunk->capacity && !stream.hung_up) stream.readable = false;
  op.data = Slice(chunk, chunk->data(), static_cast<std::uint32_t>(got));
  turn_.complete(op, {}, static_cast<std::uint64_t>(got));
}

void RealNet::write_some(io::Op& op, io::StreamId id, std::span<const ConstBuf> pieces) {
  io::submit(op);
  Stream* stream = find(id);
  if (stream == nullptr || stream->kind != Kind::stream) return stale(op, "write_some");
  RQ_CHECK(stream->write == nullptr);
  stream->unsent.clear();
  for (const ConstBuf& piece : pieces) {
    if (piece.empty()) continue;
    if (stream->unsent.size() == kVectorMax) break;
    stream->unsent.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  RQ_CHECK(!stream->unsent.empty());
  stream->write = &op;
  if (stream->writable) try_write(*stream);
}

void RealNet::try_write(Stream& stream) {
  if (stream.tls != nullptr) return try_write_tls(stream);
  msghdr message{};
  message.msg_iov = stream.unsent.data();
  message.msg_iovlen = stream.unsent.size();
  ++counters_.writes;
  ssize_t sent = 0;
  const iovec& first = stream.unsent.front();
  do {
    sent = stream.unsent.size() == 1 ? ::send(stream.fd, first.iov_base, first.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : ::sendmsg(stream.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && would_block(errno)) {
    ++counters_.writes_blocked;
    stream.writable = false;
    return;
  }
  io::Op& op = *stream.write;
  stream.write = nullptr;
  stream.unsent.clear();
  if (sent < 0) return turn_.complete(op, stream_error(errno, "write_some"));
  turn_.complete(op, {}, static_cast<std::uint64_t>(sent));
}

void RealNet::shutdown_write(io::StreamId id) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->kind != Kind::stream) {
    ++counters_.stale_calls;
    return;
  }
  end_tls(*stream);
  ::shutdown(stream->fd, SHUT_WR);
}

void RealNet::close(io::StreamId id) {
  Stream* stream = find(id);
  if (stream == nullptr) {
    ++counters_.stale_calls;
    return;
  }
  if (stream->kind == Kind::connecting) return finish_connect(id, {io::Errc::cancelled, 0, "connect"});
  const io::Error cancelled{io::Errc::cancelled, 0, "close"};
  if (stream->handshake != nullptr) finish_handshake(id, cancelled);
  if (stream->read != nullptr) turn_.complete(*stream->read, cancelled);
  if (stream->write != nullptr) turn_.complete(*stream->write, cancelled);
  if (stream->entry != nullptr) turn_.complete(*stream->entry, cancelled);
  if (stream->kind == Kind::stream) {
    // Bytes that nobody read would turn the close into a reset, which may overtake the last frame sent.
    char rest[16 * 1024];
    end_tls(*stream);
    ::shutdown(stream->fd, SHUT_WR);
    for (int i = 0; i < 64 && ::recv(stream->fd, rest, sizeof rest, MSG_DONTWAIT) > 0; ++i) {
    }
  }
  drop(index_of(id));
}

io::PeerInfo RealNet::info(io::StreamId id) const {
  const Stream* stream = find(id);
  io::PeerInfo info;
  if (stream == nullptr) return info;
  info.address = stream->peer;
  if (stream->tls == nullptr || !stream->tls->established()) return info;
  info.tls = true;
  info.tls_version = stream->tls->version();
  info.tls_cipher = stream->tls->cipher();
  info.common_name = stream->tls->common_name();
  return info;
}

std::string RealNet::local_address(io::StreamId id) const {
  const Stream* stream = find(id);
  SocketAddress address;
  address.length = sizeof address.storage;
  if (stream == nullptr || ::getsockname(stream->fd, address.get(), &address.length) != 0) return {};
  return format_address(address);
}

// ---- readiness

bool RealNet::collect() {
  epoll_event events[Readiness::kBatch];
  const int count = ready_.take(events);
  for (int i = 0; i < count; ++i) on_ready(static_cast<io::StreamId>(events[i].data.u64), events[i].events);
  return count == Readiness::kBatch;
}

void RealNet::on_ready(io::StreamId id, std::uint32_t events) {
  Stream* found = find(id);
  if (found == nullptr) return;
  Stream& stream = *found;
  constexpr std::uint32_t kBroken = EPOLLERR | EPOLLHUP;
  if (events & (EPOLLIN | EPOLLRDHUP | kBroken)) stream.readable = true;
  if (events & (EPOLLRDHUP | kBroken)) stream.hung_up = true;
  if (events & (EPOLLOUT | kBroken)) stream.writable = true;
  if (stream.kind == Kind::connecting) {
    if (!stream.writable) return;
    int os = 0;
    socklen_t length = sizeof os;
    if (::getsockopt(stream.fd, SOL_SOCKET, SO_ERROR, &os, &length) != 0) os = errno;
    return finish_connect(id, os == 0 ? io::Error{} : error_from(os, "connect"));
  }
  if (stream.kind == Kind::listener) {
    if (stream.readable && stream.entry != nullptr) try_accept(stream);
    return;
  }
  if (stream.handshake != nullptr) return try_handshake(id, stream);
  if (stream.readable && stream.read != nullptr) try_read(stream);
  const bool records = stream.tls != nullptr && !stream.tls->pending().empty();
  if (stream.writable && (stream.write != nullptr || records)) try_write(stream);
}

}  // namespace rq::real
