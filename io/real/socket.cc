#include "io/real/socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "io/real/errors.h"

namespace rq::real {

void Socket::open(int fd) {
  fd_ = fd;
  readable_ = writable_ = hung_up_ = false;
}

void Socket::note(std::uint32_t events) {
  constexpr std::uint32_t kBroken = EPOLLERR | EPOLLHUP;
  if (events & (EPOLLIN | EPOLLRDHUP | kBroken)) readable_ = true;
  if (events & (EPOLLRDHUP | kBroken)) hung_up_ = true;
  if (events & (EPOLLOUT | kBroken)) writable_ = true;
}

bool Socket::has_input() const { return readable_ || (tls_ != nullptr && tls_->may_read()); }

Step Socket::receive(MutBuf into) {
  if (tls_ != nullptr) return receive_tls(into);
  ssize_t got = 0;
  do got = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && would_block(errno)) {
    readable_ = false;
    return {};
  }
  if (got < 0) return {true, stream_error(errno, "read_some")};
  if (got == 0) return {true, {io::Errc::eof, 0, "read_some"}};
  // Less than asked for: the socket is empty, and more data is a new edge (epoll(7)). An end that was already seen is none.
  if (static_cast<std::size_t>(got) < into.size() && !hung_up_) readable_ = false;
  return {true, {}, static_cast<std::uint64_t>(got)};
}

Step Socket::send(std::span<const iovec> pieces) {
  if (tls_ != nullptr) return send_tls(pieces);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  const iovec& first = pieces.front();
  ssize_t sent = 0;
  do {
    sent = pieces.size() == 1 ? ::send(fd_, first.iov_base, first.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && would_block(errno)) {
    writable_ = false;
    return {};
  }
  if (sent < 0) return {true, stream_error(errno, "write_some")};
  return {true, {}, static_cast<std::uint64_t>(sent)};
}

void Socket::end_output() {
  end_tls();
  ::shutdown(fd_, SHUT_WR);
}

void Socket::close() {
  // Bytes that nobody read would turn the close into a reset, which may overtake the last frame sent.
  char rest[16 * 1024];
  end_output();
  for (int i = 0; i < 64 && ::recv(fd_, rest, sizeof rest, MSG_DONTWAIT) > 0; ++i) {
  }
  ::close(fd_);
  fd_ = -1;
  tls_.reset();
  plain_ = 0;
}

}  // namespace rq::real
