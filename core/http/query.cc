#include "core/http/query.h"

#include "core/base/text.h"

namespace rq::http {

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '+' && plus_is_space) {
      out.push_back(' ');
    } else if (c != '%') {
      out.push_back(c);
    } else {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

std::optional<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (pair.empty()) continue;
    if (pair.find(';') != std::string_view::npos) return std::nullopt;
    const std::size_t equals = pair.find('=');
    auto key = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!key || !value) return std::nullopt;
    query.pairs_.emplace_back(std::move(*key), std::move(*value));
  }
  return query;
}

const std::string* Query::find(std::string_view key) const {
  for (const auto& [name, value] : pairs_)
    if (name == key) return &value;
  return nullptr;
}

std::optional<Target> parse_target(std::string_view target) {
  if (target == "*") return Target{"*", ""};
  if (!target.starts_with('/')) {
    const std::size_t scheme = target.find("://");
    if (scheme == std::string_view::npos || scheme > 5) return std::nullopt;
    const std::size_t end = target.find_first_of("/?", scheme + 3);
    target = end == std::string_view::npos ? std::string_view("/") : target.substr(end);
  }
  const std::size_t mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark), false);
  if (!path) return std::nullopt;
  if (path->empty()) *path = "/";
  return Target{std::move(*path), mark == std::string_view::npos ? std::string() : std::string(target.substr(mark + 1))};
}

}  // namespace rq::http
