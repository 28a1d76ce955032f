// The target of a request, taken apart with the rules of page 10 section 6.1: parameters come only from the query string, the
// first value of a repeated key wins, a bad escape or a ";" makes the whole query unusable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rq::http {

// "%41" -> "A", and with `plus_is_space` "+" -> " ". Nothing for "%zz" or a cut escape.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

class Query {
 public:
  static std::optional<Query> parse(std::string_view text);

  // Null when absent; an empty value is present.
  const std::string* find(std::string_view key) const;
  std::size_t size() const { return pairs_.size(); }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

struct Target {
  std::string path;   // decoded, begins with "/" (or is "*")
  std::string query;  // as sent, without the "?"
};
// Origin form, absolute form ("http://host/path") and "*". Nothing for anything else or a bad escape in the path.
std::optional<Target> parse_target(std::string_view target);

}  // namespace rq::http
