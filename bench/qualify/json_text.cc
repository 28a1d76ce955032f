#include "bench/qualify/json_text.h"

#include <fmt/format.h>

#include "core/base/json_writer.h"

namespace rq::qualify {
namespace {

void put(std::string& out, const boost::json::value& value, std::size_t depth);

template <class Range, class PutEach>
void put_range(std::string& out, const Range& range, const char* brackets, std::size_t depth, PutEach put_each) {
  out += brackets[0];
  bool first = true;
  for (const auto& each : range) {
    out.append(first ? "\n" : ",\n").append(2 * (depth + 1), ' ');
    first = false;
    put_each(each);
  }
  if (!first) out.append("\n").append(2 * depth, ' ');
  out += brackets[1];
}

void put_double(std::string& out, double number) {
  std::string digits = fmt::format("{}", number);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  out += digits;
}

void put(std::string& out, const boost::json::value& value, std::size_t depth) {
  if (value.is_object()) {
    put_range(out, value.get_object(), "{}", depth, [&](const boost::json::key_value_pair& pair) {
      put_json_string(out, {pair.key().data(), pair.key().size()});
      out += ": ";
      put(out, pair.value(), depth + 1);
    });
  } else if (value.is_array()) {
    put_range(out, value.get_array(), "[]", depth, [&](const boost::json::value& each) { put(out, each, depth + 1); });
  } else if (value.is_double()) {
    put_double(out, value.get_double());
  } else if (value.is_string()) {
    put_json_string(out, {value.get_string().data(), value.get_string().size()});
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string json_text(const boost::json::value& value) {
  std::string out;
  put(out, value, 0);
  return out;
}

}  // namespace rq::qualify
