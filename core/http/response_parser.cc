#include "core/http/response_parser.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"

namespace rq::http {
namespace {

constexpr std::string_view kBlankLine = "\r\n\r\n";

template <class Number>
bool parse_digits(std::string_view text, Number& out) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void ResponseParser::feed(ConstBuf input) {
  std::string_view rest = text_of(input);
  while (!rest.empty() && (stage_ == Stage::head || stage_ == Stage::body)) {
    if (stage_ == Stage::head) {
      rest.remove_prefix(feed_head(rest));
    } else if (is_chunked_) {
      rest.remove_prefix(chunked_.feed(bytes_of(rest), *this));
      if (chunked_.bad()) return fail();
      if (chunked_.done() && stage_ == Stage::body) stage_ = Stage::complete;
    } else {
      const std::uint64_t left = length_ ? *length_ - body_.size() : rest.size();
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, rest.size()));
      on_body(bytes_of(rest.substr(0, part)));
      rest.remove_prefix(part);
      if (stage_ == Stage::body && length_ && body_.size() == *length_) stage_ = Stage::complete;
    }
  }
}

void ResponseParser::on_body(ConstBuf bytes) {
  if (bytes.size() > body_bytes_max_ - body_.size()) return fail();
  put_bytes(body_, bytes);
}

void ResponseParser::end_of_input() {
  if (stage_ == Stage::complete) return;
  stage_ = stage_ == Stage::body && !is_chunked_ && !length_ ? Stage::complete : Stage::failed;
}

std::size_t ResponseParser::feed_head(std::string_view input) {
  const std::size_t before = head_.size();
  const std::size_t part = std::min(input.size(), head_bytes_max_ + 1 - before);
  head_ += input.substr(0, part);
  const std::size_t from = before < kBlankLine.size() ? 0 : before - kBlankLine.size() + 1;
  const std::size_t end = head_.find(kBlankLine, from);
  if (end == std::string::npos) {
    if (head_.size() > head_bytes_max_) fail();
    return part;
  }
  const std::size_t used = end + kBlankLine.size() - before;
  head_.resize(end + 2);
  const bool good = parse_head(head_);
  head_.clear();
  if (!good) {
    fail();
    return used;
  }
  if (status_ >= 100 && status_ < 200) {
    length_.reset();
    is_chunked_ = false;
    return used;
  }
  if (is_chunked_) length_.reset();
  stage_ = length_ == std::uint64_t{0} || status_ == 204 || status_ == 304 ? Stage::complete : Stage::body;
  return used;
}

// "HTTP/1.1 200 OK\r\n" and fields, each line with its end.
bool ResponseParser::parse_head(std::string_view head) {
  const std::string_view first = head.substr(0, head.find("\r\n"));
  if (!first.starts_with("HTTP/1.") || first.size() < 12 || first[8] != ' ') return false;
  if (!parse_digits(first.substr(9, 3), status_) || (first.size() > 12 && first[12] != ' ')) return false;
  head.remove_prefix(first.size() + 2);
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !parse_field(line.substr(0, colon), trimmed(line.substr(colon + 1), " \t")))
      return false;
    head.remove_prefix(end + 2);
  }
  return true;
}

bool ResponseParser::parse_field(std::string_view name, std::string_view value) {
  if (equal_ignoring_case(name, "transfer-encoding")) {
    is_chunked_ = equal_ignoring_case(value, "chunked");
    return is_chunked_;
  }
  if (!equal_ignoring_case(name, "content-length")) return true;
  std::uint64_t length = 0;
  if (!parse_digits(value, length) || (length_ && *length_ != length)) return false;
  length_ = length;
  return length <= body_bytes_max_;
}

}  // namespace rq::http
