// TLS on a socket: the machine of tls.h between the descriptor and its calls.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "io/real/errors.h"
#include "io/real/socket.h"

namespace rq::real {
namespace {

constexpr std::size_t kPlainPieceBytes = 64 * 1024;  // encrypted for one round of writes
constexpr std::size_t kRecordBytes = 16 * 1024;      // the most that one record of TLS holds

// Neighbours share a record: one for each small piece would cost more than copying them together, here and at the peer. Adds what
// it took to `plain`; false: the connection is broken.
bool encrypt(TlsMachine& tls, std::span<const iovec> pieces, std::size_t& plain) {
  std::array<std::byte, kRecordBytes> record;
  std::size_t filled = 0;
  for (const iovec& piece : pieces) {
    const std::size_t most = std::min(piece.iov_len, kPlainPieceBytes - plain);
    for (std::size_t at = 0; at < most;) {
      const std::size_t part = std::min(most - at, kRecordBytes - filled);
      std::memcpy(record.data() + filled, static_cast<const std::byte*>(piece.iov_base) + at, part);
      filled += part;
      at += part;
      if (filled < kRecordBytes) continue;
      if (!tls.write(record)) return false;
      filled = 0;
    }
    plain += most;
  }
  return filled == 0 || tls.write(std::span(record).first(filled));
}

}  // namespace

Step Socket::handshake() {
  for (;;) {
    const TlsMachine::Result result = tls_->handshake();
    int os = 0;
    if (!send_records(os) && os != 0) return {true, stream_error(os, "tls")};
    if (result == TlsMachine::Result::done) return {true, {}};
    if (result != TlsMachine::Result::need_input) return {true, {io::Errc::tls, 0, "tls"}};
    if (!readable_) return {};
    const Moved moved = feed_tls();
    if (moved == Moved::none) return {};
    if (moved == Moved::ended) return {true, {io::Errc::eof, 0, "tls"}};
    if (moved == Moved::broken) return {true, stream_error(errno, "tls")};
  }
}

io::PeerInfo Socket::agreed() const {
  io::PeerInfo info;
  info.tls = true;
  info.tls_version = tls_->version();
  info.tls_cipher = tls_->cipher();
  info.common_name = tls_->common_name();
  return info;
}

Socket::Moved Socket::feed_tls() {
  std::byte buffer[TlsMachine::kFeedBytes];
  ssize_t got = 0;
  do got = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && would_block(errno)) {
    readable_ = false;
    return Moved::none;
  }
  if (got < 0) return Moved::broken;
  if (got == 0) return Moved::ended;
  if (static_cast<std::size_t>(got) < sizeof buffer && !hung_up_) readable_ = false;
  tls_->feed(ConstBuf(buffer, static_cast<std::size_t>(got)));
  return Moved::some;
}

bool Socket::has_records() const { return tls_ != nullptr && !tls_->pending().empty(); }

bool Socket::send_records(int& os) {
  os = 0;
  while (!tls_->pending().empty()) {
    const ConstBuf records = tls_->pending();
    ssize_t sent = 0;
    do sent = ::send(fd_, records.data(), records.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && would_block(errno)) {
      writable_ = false;
      return false;
    }
    if (sent < 0) {
      os = errno;
      return false;
    }
    tls_->sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void Socket::flush_records() {
  int os = 0;  // a failure comes again with the next call
  send_records(os);
}

Step Socket::receive_tls(MutBuf into) {
  for (;;) {
    std::size_t got = 0;
    const TlsMachine::Result result = tls_->read(into, got);
    int os = 0;
    if (writable_ && !send_records(os) && os != 0) return {true, stream_error(os, "read_some")};
    if (result == TlsMachine::Result::done) return {true, {}, got};
    if (result == TlsMachine::Result::ended) return {true, {io::Errc::eof, 0, "read_some"}};
    if (result == TlsMachine::Result::failed) return {true, {io::Errc::tls, 0, "read_some"}};
    const Moved moved = readable_ ? feed_tls() : Moved::none;
    if (moved == Moved::none) return {};
    if (moved == Moved::ended) return {true, {io::Errc::eof, 0, "read_some"}};  // without a goodbye, which many do
    if (moved == Moved::broken) return {true, stream_error(errno, "read_some")};
  }
}

Step Socket::send_tls(std::span<const iovec> pieces) {
  for (;;) {
    int os = 0;
    const bool sent = send_records(os);
    const std::size_t plain = plain_;
    if (os != 0 || (sent && plain > 0)) plain_ = 0;
    if (os != 0) return {true, stream_error(os, "write_some")};
    if (!sent) return {};
    if (plain > 0) return {true, {}, plain};
    if (!encrypt(*tls_, pieces, plain_)) {
      plain_ = 0;
      return {true, {io::Errc::tls, 0, "write_some"}};
    }
  }
}

void Socket::end_tls() {
  if (tls_ == nullptr) return;
  int os = 0;
  if (!send_records(os)) return;  // records cut short may not be followed by others
  tls_->end();
  send_records(os);
}

}  // namespace rq::real
