// Heads are parsed by boost::beast's basic_parser, a pure grammar without I/O: with error codes it throws nothing, it needs no
// symbol beyond memory and string functions, and its treatment of hostile heads is well worn. This file is the only one that sees
// it. Bodies are decoded here and in ChunkedDecoder: basic_parser asserts on a last chunk that arrives one byte at a time.
#include "core/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/base/text.h"

namespace rq::http {
namespace {

namespace beast = boost::beast;

// Continuation lines (RFC 9112 section 5.2) as one space each: the grammar joins no more than 4 KiB of them. One that follows
// the request line continues nothing and stays.
std::string unfolded(std::string_view head) {
  constexpr std::string_view kBlanks = " \t";
  std::string out(head.substr(0, head.find("\r\n") + 2));
  const std::size_t fields = out.size();
  for (std::size_t at = fields; at < head.size();) {
    const std::size_t end = head.find("\r\n", at);
    const std::string_view line = head.substr(at, end - at);
    const std::size_t text = std::min(line.find_first_not_of(kBlanks), line.size());
    if (text > 0 && out.size() > fields) {
      out.resize(out.size() - 2);
      while (kBlanks.find(out.back()) != kBlanks.npos) out.pop_back();
      out.append(" ").append(line.substr(text));
    } else {
      out += line;
    }
    out += "\r\n";
    at = end + 2;
  }
  return out;
}

void join(std::string& list, std::string_view value) {
  if (!list.empty()) list += ", ";
  list += value;
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

class Parser final : public beast::http::basic_parser<true> {
 public:
  using Code = beast::error_code;

  explicit Parser(std::size_t head_bytes_max) {
    eager(false);
    header_limit(static_cast<std::uint32_t>(head_bytes_max));
    body_limit(boost::none);
  }

  Request request;
  int refused = 0;  // status of what the grammar allows and this server does not

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version, Code&) override {
    request.method = view(method);
    request.target = view(target);
    request.version = version;
  }
  void on_response_impl(int, beast::string_view, int, Code&) override {}
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value, Code& code) override {
    switch (field) {
      case beast::http::field::transfer_encoding:
        if (!equal_ignoring_case(view(value), "chunked") || seen_coding_ || request.version < 11) unsupported_ = 501;
        seen_coding_ = true;
        break;
      case beast::http::field::content_length:
        seen_length_ = true;
        break;
      case beast::http::field::expect:
        if (!equal_ignoring_case(view(value), "100-continue") && unsupported_ == 0) unsupported_ = 417;
        request.expect_continue = request.version >= 11;
        break;
      case beast::http::field::authorization:
        request.authorization = view(value);
        request.has_authorization = true;
        break;
      case beast::http::field::accept:
        request.accept = view(value);
        break;
      case beast::http::field::content_type:
        request.content_type = view(value);
        break;
      case beast::http::field::origin:
        if (!request.origin) request.origin.emplace();
        join(*request.origin, view(value));
        break;
      case beast::http::field::connection:
        join(request.connection, view(value));
        break;
      case beast::http::field::upgrade:
        join(request.upgrade, view(value));
        break;
      case beast::http::field::sec_websocket_key:
        join(request.websocket_key, view(value));
        break;
      case beast::http::field::sec_websocket_version:
        join(request.websocket_version, view(value));
        break;
      case beast::http::field::sec_websocket_protocol:
        join(request.websocket_protocols, view(value));
        break;
      default:
        if (equal_ignoring_case(view(name), "x-rustqueue-token")) request.token = view(value);
    }
    if (seen_coding_ && seen_length_) refuse(400, code);
  }
  void on_header_impl(Code& code) override {
    if (unsupported_ != 0) return refuse(unsupported_, code);
    // keep_alive() of the base would heed Proxy-Connection, which is for proxies.
    beast::http::token_list said{beast::string_view(request.connection)};
    request.keep_alive = !said.exists("close") && (request.version >= 11 || said.exists("keep-alive"));
    request.chunked = chunked();
    if (const auto length = content_length(); length && !request.chunked) request.content_length = *length;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}
  std::size_t on_body_impl(beast::string_view bytes, Code&) override { return bytes.size(); }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, Code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, Code&) override { return bytes.size(); }
  void on_finish_impl(Code&) override {}

  void refuse(int status, Code& code) {
    refused = status;
    code = beast::http::error::bad_value;
  }

  bool seen_coding_ = false, seen_length_ = false;
  int unsupported_ = 0;  // status of what a well-formed head asks for and does not get; a malformed one is told first
};

}  // namespace

RequestParser::RequestParser(std::size_t head_bytes_max) : head_bytes_max_(head_bytes_max) {}

const Request& RequestParser::request() const {
  RQ_CHECK(stage_ == Stage::body || stage_ == Stage::complete);
  return request_;
}

void RequestParser::reset() {
  stage_ = Stage::head;
  started_ = false;
  failure_status_ = 0;
  std::string().swap(head_);
  ending_ = 0;
  folded_ = false;
  request_ = {};
  body_left_ = 0;
  chunked_ = {};
}

void RequestParser::fail(int status) {
  stage_ = Stage::failed;
  failure_status_ = status;
  std::string().swap(head_);
}

std::size_t RequestParser::feed(ConstBuf input, BodySink& sink) {
  if (input.empty()) return 0;
  if (stage_ == Stage::head) return feed_head(input);
  if (stage_ == Stage::body) return feed_body(input, sink);
  return 0;
}

// Looks for the blank line first and parses then, so that the grammar always sees the whole head.
std::size_t RequestParser::feed_head(ConstBuf input) {
  const std::string_view text = text_of(input);
  std::size_t at = 0;
  if (!started_) {  // blank lines before a request (RFC 9112 section 2.2)
    while (at < text.size() && (text[at] == '\r' || text[at] == '\n')) ++at;
    if (at == text.size()) return at;
    started_ = true;
    // A method begins with a letter. Whoever speaks another protocol here is told at once.
    if ((text[at] | 0x20) < 'a' || (text[at] | 0x20) > 'z') {
      fail(400);
      return text.size();
    }
  }
  const std::size_t begin = at;
  while (at < text.size() && ending_ < 4) {
    const char c = text[at++];
    const bool after_cr = ending_ == 1 || ending_ == 3;
    if (c == '\n' && !after_cr) {  // lines end with CR LF
      fail(400);
      return text.size();
    }
    folded_ = folded_ || (ending_ == 2 && (c == ' ' || c == '\t'));
    ending_ = c == '\n' ? ending_ + 1 : c != '\r' ? 0 : ending_ == 2 ? 3 : 1;
    if (head_.size() + (at - begin) > head_bytes_max_) {
      fail(431);
      return text.size();
    }
  }
  const std::string_view part = text.substr(begin, at - begin);
  if (ending_ == 4 && head_.empty()) {
    parse_head(part);
    return at;
  }
  head_ += part;
  if (ending_ == 4) parse_head(std::string(std::move(head_)));
  return at;
}

void RequestParser::parse_head(std::string_view head) {
  if (std::exchange(folded_, false)) return parse_head(unfolded(head));
  Parser parser(head_bytes_max_ + 8);
  Parser::Code code;
  std::size_t used = 0;
  while (!parser.is_header_done() && !code)
    used += parser.put(boost::asio::const_buffer(head.data() + used, head.size() - used), code);
  if (code || used != head.size()) return fail(parser.refused != 0 ? parser.refused : 400);
  request_ = std::move(parser.request);
  body_left_ = request_.content_length.value_or(0);
  stage_ = request_.has_body() ? Stage::body : Stage::complete;
  std::string().swap(head_);
}

std::size_t RequestParser::feed_body(ConstBuf input, BodySink& sink) {
  if (request_.chunked) {
    const std::size_t used = chunked_.feed(input, sink);
    if (chunked_.bad()) fail(400);
    if (chunked_.done()) stage_ = Stage::complete;
    return used;
  }
  const std::size_t used = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, input.size()));
  sink.on_body(input.first(used));
  body_left_ -= used;
  if (body_left_ == 0) stage_ = Stage::complete;
  return used;
}

}  // namespace rq::http
