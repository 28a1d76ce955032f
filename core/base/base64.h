// RFC 4648 section 4, with padding.
#pragma once

#include <string>
#include <string_view>

namespace rq {

std::string to_base64(std::string_view bytes);

}  // namespace rq
