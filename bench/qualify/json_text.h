// JSON for people: indented by two blanks, keys in their order, numbers as short as they can be read back.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace rq::qualify {

std::string json_text(const boost::json::value& value);

}  // namespace rq::qualify
