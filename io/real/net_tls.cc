// TLS on a stream: the machine of tls.h between its socket and its calls.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "io/real/errors.h"
#include "io/real/net.h"

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

bool would_block(int os) { return os == EAGAIN || os == EWOULDBLOCK; }

}  // namespace

// ---- the handshake

void RealNet::start_tls(io::Op& op, io::StreamId id, std::span<const ConstBuf> leftover, Instant deadline) {
  io::submit(op);
  Stream* stream = find(id);
  if (stream == nullptr || stream->kind != Kind::stream) return stale(op, "tls");
  if (tls_server_ == nullptr) return turn_.complete(op, {io::Errc::tls, 0, "tls"});
  stream->tls = std::make_unique<TlsMachine>(*tls_server_);
  for (const ConstBuf piece : leftover) stream->tls->feed(piece);
  begin_handshake(id, *stream, op, deadline);
}

void RealNet::start_tls_client(io::Op& op, io::StreamId id, std::string_view server_name, Instant deadline) {
  io::submit(op);
  Stream* stream = find(id);
  if (stream == nullptr || stream->kind != Kind::stream) return stale(op, "tls");
  if (tls_client_ == nullptr) tls_client_ = tls_client_context();
  if (tls_client_ == nullptr) return turn_.complete(op, {io::Errc::tls, 0, "tls"});
  const std::string name(server_name);
  stream->tls = std::make_unique<TlsMachine>(*tls_client_, &name);
  begin_handshake(id, *stream, op, deadline);
}

void RealNet::begin_handshake(io::StreamId id, Stream& stream, io::Op& op, Instant deadline) {
  RQ_CHECK(stream.read == nullptr && stream.write == nullptr && stream.handshake == nullptr);
  stream.handshake = &op;
  stream.deadline = deadline;
  handshaking_.push_back(id);
  try_handshake(id, stream);
}

void RealNet::try_handshake(io::StreamId id, Stream& stream) {
  for (;;) {
    const TlsMachine::Result result = stream.tls->handshake();
    int os = 0;
    if (!send_pending(stream, os) && os != 0) return finish_handshake(id, stream_error(os, "tls"));
    if (result == TlsMachine::Result::done) return finish_handshake(id, {});
    if (result != TlsMachine::Result::need_input) return finish_handshake(id, {io::Errc::tls, 0, "tls"});
    if (!stream.readable) return;
    switch (receive_into(stream)) {
      case Moved::some:
        break;
      case Moved::none:
        return;
      case Moved::ended:
        return finish_handshake(id, {io::Errc::eof, 0, "tls"});
      case Moved::broken:
        return finish_handshake(id, stream_error(errno, "tls"));
    }
  }
}

void RealNet::finish_handshake(io::StreamId id, io::Error error) {
  handshaking_.erase(std::find(handshaking_.begin(), handshaking_.end(), id));
  Stream& stream = *find(id);
  io::Op& op = *stream.handshake;
  stream.handshake = nullptr;
  stream.deadline = Instant::never();
  turn_.complete(op, error);
}

// ---- bytes

RealNet::Moved RealNet::receive_into(Stream& stream) {
  std::byte buffer[TlsMachine::kFeedBytes];
  ++counters_.reads;
  ssize_t got = 0;
  do got = ::recv(stream.fd, buffer, sizeof buffer, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && would_block(errno)) {
    ++counters_.reads_empty;
    stream.readable = false;
    return Moved::none;
  }
  if (got < 0) return Moved::broken;
  if (got == 0) return Moved::ended;
  if (static_cast<std::size_t>(got) < sizeof buffer && !stream.hung_up) stream.readable = false;
  stream.tls->feed(ConstBuf(buffer, static_cast<std::size_t>(got)));
  return Moved::some;
}

bool RealNet::send_pending(Stream& stream, int& os) {
  os = 0;
  while (!stream.tls->pending().empty()) {
    const ConstBuf records = stream.tls->pending();
    ++counters_.writes;
    ssize_t sent = 0;
    do sent = ::send(stream.fd, records.data(), records.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      if (would_block(errno)) {
        ++counters_.writes_blocked;
        stream.writable = false;
      } else {
        os = errno;
      }
      return false;
    }
    stream.tls->sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void RealNet::try_read_tls(Stream& stream) {
  Chunk* chunk = stream.pool->take();
  const auto end = [&](io::Error error) {
    stream.pool->give_back(chunk);
    io::Op& op = *std::exchange(stream.read, nullptr);
    turn_.complete(op, error);
  };
  for (;;) {
    std::size_t got = 0;
    const TlsMachine::Result result = stream.tls->read(MutBuf(chunk->data(), chunk->capacity), got);
    int os = 0;
    if (stream.writable && !send_pending(stream, os) && os != 0) return end(stream_error(os, "read_some"));
    if (result == TlsMachine::Result::done) {
      io::ReadOp& op = *std::exchange(stream.read, nullptr);
      op.data = Slice(chunk, chunk->data(), static_cast<std::uint32_t>(got));
      return turn_.complete(op, {}, got);
    }
    if (result == TlsMachine::Result::ended) return end({io::Errc::eof, 0, "read_some"});
    if (result == TlsMachine::Result::failed) return end({io::Errc::tls, 0, "read_some"});
    const Moved moved = stream.readable ? receive_into(stream) : Moved::none;
    if (moved == Moved::some) continue;
    if (moved == Moved::ended) return end({io::Errc::eof, 0, "read_some"});  // without a goodbye, which many do
    if (moved == Moved::broken) return end(stream_error(errno, "read_some"));
    stream.pool->give_back(chunk);
    return;
  }
}

void RealNet::try_write_tls(Stream& stream) {
  const auto end = [&](io::Error error, std::uint64_t value = 0) {
    io::Op& op = *std::exchange(stream.write, nullptr);
    stream.unsent.clear();
    stream.plain = 0;
    turn_.complete(op, error, value);
  };
  for (;;) {
    int os = 0;
    const bool sent = send_pending(stream, os);
    if (stream.write == nullptr) return;
    if (os != 0) return end(stream_error(os, "write_some"));
    if (!sent) return;
    if (stream.plain > 0) return end({}, stream.plain);
    if (!encrypt(*stream.tls, stream.unsent, stream.plain)) return end({io::Errc::tls, 0, "write_some"});
  }
}

// Says goodbye, as far as the kernel takes it at once.
void RealNet::end_tls(Stream& stream) {
  if (stream.tls == nullptr) return;
  int os = 0;
  if (!send_pending(stream, os)) return;  // records cut short may not be followed by others
  stream.tls->end();
  send_pending(stream, os);
}

}  // namespace rq::real
