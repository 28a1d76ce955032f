// Listeners, connects and the look-up of host names: always on the loop. Also how the port begins and ends.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/real/errors.h"
#include "io/real/look_up.h"
#include "io/real/net.h"
#include "io/real/net_thread.h"

namespace rq::real {
namespace {

constexpr int kBacklog = 1024;
constexpr int kKeepAliveSeconds = 15;

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

// What accept(2) reports of one connection that was waiting, or of its network: the next one may be well.
bool of_one_connection(int os) {
  switch (os) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

bool short_of_handles(int os) { return os == EMFILE || os == ENFILE || os == ENOBUFS || os == ENOMEM; }

}  // namespace

RealNet::RealNet(io::Turn& turn, NetOptions options, const std::function<void()>& wake)
    : turn_(turn),
      lookups_(turn, options.resolver ? std::move(options.resolver) : look_up,
               [this](io::Op& op, const SocketAddress& address, Instant deadline) { begin_connect(op, address, deadline); }) {
  for (unsigned i = 0; i < options.threads; ++i) threads_.push_back(std::make_unique<NetThread>(i, wake));
}

RealNet::~RealNet() {
  stop();
  for (const Slot& slot : slots_) {
    if (slot.endpoint.socket.fd() >= 0) ::close(slot.endpoint.socket.fd());
  }
}

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
  Slot* listener = find(id);
  if (listener == nullptr || listener->kind != Kind::listener) return stale(op, "accept");
  RQ_CHECK(listener->entry == nullptr);
  listener->entry = &op;
  if (listener->endpoint.socket.readable()) try_accept(*listener);
}

void RealNet::try_accept(Slot& listener) {
  for (;;) {
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    const int fd = ::accept4(listener.fd, peer.get(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && would_block(errno)) return listener.endpoint.socket.drained();
    if (fd < 0) {
      if (of_one_connection(errno)) continue;
      io::Error error = error_from(errno, "accept");
      if (short_of_handles(errno)) error.code = io::Errc::no_handles;
      return turn_.complete(*std::exchange(listener.entry, nullptr), error);
    }
    const io::StreamId id = add(fd, Kind::stream);  // the reference to `listener` stays valid: a deque
    if (id == io::StreamId::none) {
      const io::Error error{io::Errc::no_handles, errno, "accept"};
      ::close(fd);
      return turn_.complete(*std::exchange(listener.entry, nullptr), error);
    }
    find(id)->peer = format_address(peer);
    ++counters_.accepted;
    return turn_.complete(*std::exchange(listener.entry, nullptr), {}, static_cast<std::uint64_t>(id));
  }
}

void RealNet::connect(io::Op& op, std::string_view text, Instant deadline) {
  io::submit(op);
  if (const std::optional<SocketAddress> address = parse_address(text)) return begin_connect(op, *address, deadline);
  const std::optional<HostPort> name = parse_host_port(text);
  if (!name || !lookups_.usable()) return turn_.complete(op, {io::Errc::bad_address, 0, "connect"});
  lookups_.add(*name, op, deadline);
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
    const io::Error error{io::Errc::no_handles, errno, "connect"};
    ::close(fd);
    return turn_.complete(op, error);
  }
  Slot& slot = *find(id);
  slot.entry = &op;
  slot.deadline = deadline;
  slot.peer = format_address(address);
  connecting_.push_back(id);
}

void RealNet::on_connect(Slot& slot) {
  if (!slot.endpoint.socket.writable()) return;
  int os = 0;
  socklen_t length = sizeof os;
  if (::getsockopt(slot.fd, SOL_SOCKET, SO_ERROR, &os, &length) != 0) os = errno;
  if (os != 0) return finish_connect(slot, error_from(os, "connect"));
  slot.endpoint.socket.connected();
  if (threaded()) {
    ready_.remove(slot.fd);
    if (!place(slot)) return finish_connect(slot, {io::Errc::no_handles, errno, "connect"});
  }
  finish_connect(slot, {});
}

void RealNet::finish_connect(Slot& slot, io::Error error) {
  const io::StreamId id = id_of(slot);
  std::erase(connecting_, id);
  io::Op& op = *std::exchange(slot.entry, nullptr);
  slot.deadline = Instant::never();
  if (error) {
    drop(slot);
    return turn_.complete(op, error);
  }
  slot.kind = Kind::stream;
  ++counters_.connected;
  turn_.complete(op, {}, static_cast<std::uint64_t>(id));
}

}  // namespace rq::real
