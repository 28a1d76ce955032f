// Topic and Channel names (page 20 section 0): 1 to 64 bytes of A-Z a-z 0-9 . _ -, with an optional suffix #ephemeral that
// counts.
#pragma once

#include <string_view>

namespace rq::storage {

inline constexpr std::string_view kEphemeralSuffix = "#ephemeral";
inline constexpr std::size_t kNameBytesMax = 64;

bool valid_name(std::string_view name);
inline bool ephemeral_name(std::string_view name) { return name.ends_with(kEphemeralSuffix); }

}  // namespace rq::storage
