// JSON as nsqd reads it, where a strict parser does not: keys without case, and halves of UTF-16 pairs (page 10 section 3.1).
#pragma once

#include <string>
#include <string_view>

namespace rq::nsq {

// Whether `key` is `known` (lower-case ASCII) but for case. U+017F and U+212A fold to s and k.
bool same_json_key(std::string_view known, std::string_view key);
// A key longer than this is no known one of up to 64 letters.
inline constexpr std::size_t kJsonKeyBytesMax = 3 * 64;

// The document with each escaped half of a UTF-16 pair that has no other half as \ufffd; the same length. Copies into
// `storage` only when there is one.
std::string_view whole_pairs(std::string_view json, std::string& storage);

}  // namespace rq::nsq
