#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <array>

namespace rq {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

// One column per bit of the register: the image of that bit after 2^k zero bytes.
using Operator = std::array<std::uint32_t, 32>;

constexpr std::uint32_t apply(const Operator& op, std::uint32_t value) {
  std::uint32_t out = 0;
  for (int bit = 0; bit < 32; ++bit)
    if (value >> bit & 1) out ^= op[static_cast<std::size_t>(bit)];
  return out;
}

constexpr std::array<Operator, 64> make_operators() {
  std::array<Operator, 64> ops{};
  for (int bit = 0; bit < 32; ++bit) {
    std::uint32_t c = 1u << bit;
    for (int i = 0; i < 8; ++i) c = c & 1 ? (c >> 1) ^ kPolynomial : c >> 1;
    ops[0][static_cast<std::size_t>(bit)] = c;
  }
  for (std::size_t k = 1; k < ops.size(); ++k)
    for (std::size_t bit = 0; bit < 32; ++bit) ops[k][bit] = apply(ops[k - 1], ops[k - 1][bit]);
  return ops;
}

constexpr std::array<Operator, 64> kZeroBytes = make_operators();

}  // namespace

std::uint32_t crc32c(ConstBuf data, std::uint32_t previous) noexcept {
  std::uint32_t state = ~previous;
  const std::byte* at = data.data();
  std::size_t left = data.size();
  while (left > 0) {  // the library takes an int length
    const std::size_t step = left < (1u << 30) ? left : (1u << 30);
    // The library takes a mutable pointer but only reads.
    state = crc32_iscsi(const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(at)), static_cast<int>(step), state);
    at += step;
    left -= step;
  }
  return ~state;
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept {
  for (std::size_t k = 0; length_b != 0; ++k, length_b >>= 1)
    if (length_b & 1) crc_a = apply(kZeroBytes[k], crc_a);
  return crc_a ^ crc_b;
}

}  // namespace rq
