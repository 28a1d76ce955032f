#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

std::uint32_t combine_by_table(std::uint32_t crc_a, std::uint64_t length_b) {
  for (std::size_t k = 0; length_b != 0; ++k, length_b >>= 1)
    if (length_b & 1) crc_a = apply(kZeroBytes[k], crc_a);
  return crc_a;
}

#if defined(__x86_64__)
constexpr std::size_t kFirstFactor = 4;

// x^(8 * 2^k - 32): a carry-less product that the crc32 instruction reduces comes out multiplied by x^32.
constexpr std::array<std::uint32_t, 64> make_factors() {
  std::array<std::uint32_t, 64> factors{};
  for (std::size_t k = kFirstFactor; k < factors.size(); ++k) {
    std::uint32_t value = 0x80000000;  // 1, reflected
    const std::uint64_t bytes = (std::uint64_t{1} << k) - 4;
    for (std::size_t bit = 0; bit < 64; ++bit)
      if (bytes >> bit & 1) value = apply(kZeroBytes[bit], value);
    factors[k] = value;
  }
  return factors;
}
constexpr std::array<std::uint32_t, 64> kFactors = make_factors();

__attribute__((target("sse4.2,pclmul"))) std::uint32_t combine_by_product(std::uint32_t crc_a, std::uint64_t length_b) {
  if (length_b & 1) crc_a = _mm_crc32_u8(crc_a, 0);
  if (length_b & 2) crc_a = _mm_crc32_u16(crc_a, 0);
  if (length_b & 4) crc_a = _mm_crc32_u32(crc_a, 0);
  if (length_b & 8) crc_a = static_cast<std::uint32_t>(_mm_crc32_u64(crc_a, 0));
  length_b >>= kFirstFactor;
  for (std::size_t k = kFirstFactor; length_b != 0; ++k, length_b >>= 1) {
    if ((length_b & 1) == 0) continue;
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(crc_a), _mm_cvtsi64_si128(kFactors[k]), 0);
    crc_a = static_cast<std::uint32_t>(_mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)) << 1));
  }
  return crc_a;
}

const bool kHasProduct = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");

// Headers and WAL commands: the library's set-up would cost more than the bytes.
constexpr std::size_t kShortBytes = 64;
const bool kHasInstruction = __builtin_cpu_supports("sse4.2");

__attribute__((target("sse4.2"))) std::uint32_t crc_of_short(const std::byte* at, std::size_t left, std::uint32_t state) {
  std::uint64_t wide = state;
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (; left > 0; ++at, --left) state = _mm_crc32_u8(state, static_cast<unsigned char>(*at));
  return state;
}
#endif

}  // namespace

std::uint32_t crc32c(ConstBuf data, std::uint32_t previous) noexcept {
  std::uint32_t state = ~previous;
  const std::byte* at = data.data();
  std::size_t left = data.size();
#if defined(__x86_64__)
  if (left < kShortBytes && kHasInstruction) return ~crc_of_short(at, left, state);
#endif
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
#if defined(__x86_64__)
  if (kHasProduct) return combine_by_product(crc_a, length_b) ^ crc_b;
#endif
  return combine_by_table(crc_a, length_b) ^ crc_b;
}

std::uint32_t crc32c_combine_portable(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept {
  return combine_by_table(crc_a, length_b) ^ crc_b;
}

}  // namespace rq
