#include "core/storage/wal.h"

namespace rq::storage {
namespace {

constexpr std::string_view kMagic = "RCW7";

// Body length with the tag; 0 for a tag that does not exist.
std::uint32_t body_bytes_of(std::uint8_t tag) {
  switch (static_cast<WalCommand::Kind>(tag)) {
    case WalCommand::Kind::finish:
      return 17;
    case WalCommand::Kind::requeue:
      return 27;
    case WalCommand::Kind::pause:
      return 2;
    case WalCommand::Kind::empty:
      return 9;
    case WalCommand::Kind::evict:
      return 9;
    case WalCommand::Kind::timeout:
      return 9;
    case WalCommand::Kind::requeue_counted:
      return 35;
  }
  return 0;
}

}  // namespace

std::uint32_t wal_frame_bytes(const WalCommand& command) {
  return kFrameHeaderBytes + body_bytes_of(static_cast<std::uint8_t>(command.kind));
}

void encode_wal_frame(std::byte* at, const WalCommand& command) {
  std::byte* const body = at + kFrameHeaderBytes;
  const std::uint32_t body_bytes = body_bytes_of(static_cast<std::uint8_t>(command.kind));
  body[0] = static_cast<std::byte>(command.kind);
  switch (command.kind) {
    case WalCommand::Kind::finish:
      store64(body + 1, command.position);
      store64(body + 9, command.id);
      break;
    case WalCommand::Kind::requeue:
    case WalCommand::Kind::requeue_counted:
      store64(body + 1, command.position);
      store64(body + 9, command.id);
      store64(body + 17, static_cast<std::uint64_t>(command.available_at_ms));
      store16(body + 25, command.attempts);
      if (command.kind == WalCommand::Kind::requeue_counted) store64(body + 27, command.count);
      break;
    case WalCommand::Kind::pause:
      body[1] = static_cast<std::byte>(command.paused ? 1 : 0);
      break;
    case WalCommand::Kind::empty:
    case WalCommand::Kind::evict:
      store64(body + 1, command.position);
      break;
    case WalCommand::Kind::timeout:
      store64(body + 1, command.count);
      break;
  }
  std::memcpy(at, kMagic.data(), kMagic.size());
  store32(at + 4, body_bytes);
  store32(at + 8, crc32c({body, body_bytes}));
}

void put_wal_frame(std::string& out, const WalCommand& command) {
  const std::size_t start = out.size();
  out.resize(start + wal_frame_bytes(command));
  encode_wal_frame(reinterpret_cast<std::byte*>(out.data()) + start, command);
}

bool decode_wal_body(ConstBuf body, WalCommand& out) {
  if (body.empty()) return false;
  const auto tag = static_cast<std::uint8_t>(body[0]);
  if (body.size() != body_bytes_of(tag)) return false;  // 0 never matches
  const std::byte* fields = body.data() + 1;
  out = WalCommand{};
  out.kind = static_cast<WalCommand::Kind>(tag);
  switch (out.kind) {
    case WalCommand::Kind::finish:
      out.position = load64(fields);
      out.id = load64(fields + 8);
      return true;
    case WalCommand::Kind::requeue:
    case WalCommand::Kind::requeue_counted:
      out.position = load64(fields);
      out.id = load64(fields + 8);
      out.available_at_ms = static_cast<std::int64_t>(load64(fields + 16));
      out.attempts = load16(fields + 24);
      if (out.kind == WalCommand::Kind::requeue_counted) out.count = load64(fields + 26);
      return true;
    case WalCommand::Kind::pause:
      if (static_cast<std::uint8_t>(fields[0]) > 1) return false;
      out.paused = static_cast<std::uint8_t>(fields[0]) == 1;
      return true;
    case WalCommand::Kind::empty:
    case WalCommand::Kind::evict:
      out.position = load64(fields);
      return true;
    case WalCommand::Kind::timeout:
      out.count = load64(fields);
      return true;
  }
  return false;
}

WalRead read_wal_frame(ConstBuf rest, WalCommand& out, std::uint32_t& consumed) {
  consumed = 0;
  if (rest.empty()) return WalRead::end;
  if (rest.size() < kFrameHeaderBytes) return WalRead::torn;
  const FrameHeader header = read_frame_header(rest);
  if (header.magic != kMagic) return WalRead::bad_magic;
  if (header.body_bytes > kWalBodyBytesMax) return WalRead::bad_length;
  if (header.body_bytes > rest.size() - kFrameHeaderBytes) {
    // With another command inside it is no torn one: its length is damaged, and what follows was acknowledged.
    const bool damaged = text_of(rest.subspan(kFrameHeaderBytes)).find(kMagic) != std::string_view::npos;
    return damaged ? WalRead::bad_length : WalRead::torn;
  }
  const ConstBuf body = rest.subspan(kFrameHeaderBytes, header.body_bytes);
  if (crc32c(body) != header.body_crc) return WalRead::bad_crc;
  if (!decode_wal_body(body, out)) return WalRead::bad_command;
  consumed = kFrameHeaderBytes + header.body_bytes;
  return WalRead::command;
}

}  // namespace rq::storage
