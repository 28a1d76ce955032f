// A response, and how it is written. Always with a Content-Length, never chunked, so that HTTP/1.0 clients can read it too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rq::http {

inline constexpr std::string_view kTextPlain = "text/plain; charset=utf-8";
inline constexpr std::string_view kJson = "application/json; charset=utf-8";

struct Response {
  int status = 200;
  std::string_view content_type;  // a literal; empty: no such header
  std::string body;
  std::uint64_t rest_bytes = 0;  // of the body; the caller sends them behind what write_response() gave
  bool nsq_header = true;        // X-NSQ-Content-Type (page 10 section 6.1)
  bool close = false;            // the connection ends after it
  bool dated = true;             // with a Date header
  std::vector<std::pair<std::string_view, std::string>> headers;  // further ones; names are literals
};

Response text_response(std::string_view body);
Response json_response(std::string body);
Response empty_response();
// {"message":"CODE"} and, unless empty, a "detail". A 429 carries Retry-After: 1.
Response error_response(int status, std::string_view code, std::string_view detail = {});

// For what is no request (400, 417, 431, 501): plain text that names the status, as Go's server and so nsqd says it; closes.
Response refusal_response(int status);

std::string_view reason_phrase(int status);

struct ResponseFraming {
  int version = 11;        // of the request
  bool keep_alive = true;  // what the request asks for; Response::close overrides it
  std::string_view date;   // IMF-fixdate; empty: no Date header
  bool head = false;       // a HEAD request: the body is announced, not sent
};
void write_response(std::string& out, const Response& response, const ResponseFraming& framing);

}  // namespace rq::http
