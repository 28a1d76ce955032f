// Big-endian field access and byte views. All binary integers on the wire and on disk are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace rq {

using ConstBuf = std::span<const std::byte>;
using MutBuf = std::span<std::byte>;

inline ConstBuf bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view text_of(ConstBuf bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The callers have checked that the bytes are there.
inline std::uint16_t load16(const std::byte* at) {
  std::uint16_t v;
  std::memcpy(&v, at, 2);
  return __builtin_bswap16(v);
}
inline std::uint32_t load32(const std::byte* at) {
  std::uint32_t v;
  std::memcpy(&v, at, 4);
  return __builtin_bswap32(v);
}
inline std::uint64_t load64(const std::byte* at) {
  std::uint64_t v;
  std::memcpy(&v, at, 8);
  return __builtin_bswap64(v);
}
inline void store16(std::byte* at, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(at, &v, 2);
}
inline void store32(std::byte* at, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(at, &v, 4);
}
inline void store64(std::byte* at, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(at, &v, 8);
}

// Appends fields to a string that is used as a byte buffer.
inline void put8(std::string& out, std::uint8_t v) { out.push_back(static_cast<char>(v)); }
inline void put16(std::string& out, std::uint16_t v) {
  std::byte b[2];
  store16(b, v);
  out.append(reinterpret_cast<const char*>(b), 2);
}
inline void put32(std::string& out, std::uint32_t v) {
  std::byte b[4];
  store32(b, v);
  out.append(reinterpret_cast<const char*>(b), 4);
}
inline void put64(std::string& out, std::uint64_t v) {
  std::byte b[8];
  store64(b, v);
  out.append(reinterpret_cast<const char*>(b), 8);
}
inline void put_bytes(std::string& out, ConstBuf bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

}  // namespace rq
