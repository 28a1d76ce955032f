// CRC-32C (Castagnoli), as used everywhere in data format v7 (page 20 section 0).
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace rq {

// Continues a finished value: crc32c(b, crc32c(a)) == crc32c(a followed by b). crc32c({}) == 0.
std::uint32_t crc32c(ConstBuf data, std::uint32_t previous = 0) noexcept;

// CRC of a followed by b, from crc(a), crc(b) and the length of b, without touching the bytes. O(log length).
std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept;

// The same without special instructions: what other processors use, and the reference of the tests.
std::uint32_t crc32c_combine_portable(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept;

}  // namespace rq
