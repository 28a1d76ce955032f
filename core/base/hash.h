// Our own stable 64-bit hashes: same value on every compiler and machine. For trace hashes and named random streams.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/bytes.h"

namespace rq {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// FNV-1a with a final mix.
constexpr std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ seed;
  for (char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return mix64(h);
}

// A running hash over integers and bytes; two equal traces give equal values.
struct Hasher {
  std::uint64_t value = 0x9e3779b97f4a7c15ULL;
  void add(std::uint64_t v) { value = mix64(value ^ v) + 0x9e3779b97f4a7c15ULL; }
  void add(std::string_view text) { add(hash64(text)); }
  void add(ConstBuf bytes) { add(text_of(bytes)); }
};

}  // namespace rq
