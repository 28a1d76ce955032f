// An HTTP/1.1 request as bytes arrive: the head first, then (once the caller knows what the route allows) the body.
//
//  I1 feed() never uses bytes behind the message it is at, and stops right behind the head, so that nothing of a body is
//     taken before the caller has looked at the head.
//  I2 Memory: at most head_bytes_max for an incomplete head; body bytes go straight to the sink.
//  I3 A request with both Content-Length and Transfer-Encoding, or with another transfer coding than chunked, fails (D-37).
//  I4 How the bytes are cut into pieces changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/http/chunked_decoder.h"

namespace rq::http {

struct Request {
  std::string method;  // as sent
  std::string target;  // as sent
  int version = 11;    // 10 or 11
  bool keep_alive = false;
  bool chunked = false;
  bool expect_continue = false;
  std::optional<std::uint64_t> content_length;
  std::string authorization, token, accept, content_type;  // of X-RustQueue-Token and the header of the same name
  bool has_authorization = false;                          // also an empty one
  std::optional<std::string> origin;
  // Of an upgrade to WebSocket: Connection, Upgrade and the Sec-WebSocket-* headers. Lists and repeated headers joined by ", ".
  std::string connection, upgrade, websocket_key, websocket_version, websocket_protocols;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

class RequestParser {
 public:
  explicit RequestParser(std::size_t head_bytes_max = 8 * 1024);
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class Stage : std::uint8_t { head, body, complete, failed };
  Stage stage() const { return stage_; }
  bool started() const { return started_; }  // a byte of this request was there

  // Takes a prefix of the input and returns its size; everything is taken unless the stage changes.
  std::size_t feed(ConstBuf input, BodySink& sink);

  const Request& request() const;                         // from stage body on
  int failure_status() const { return failure_status_; }  // 400, 417, 431, 501, when failed
  void reset();                                           // for the next request on the connection; frees everything

 private:
  std::size_t feed_head(ConstBuf input);
  std::size_t feed_body(ConstBuf input, BodySink& sink);
  void fail(int status);

  std::size_t head_bytes_max_;
  Stage stage_ = Stage::head;
  bool started_ = false;
  int failure_status_ = 0;
  void parse_head(std::string_view head);

  std::string head_;         // as far as it has arrived
  std::uint8_t ending_ = 0;  // how many bytes of CR LF CR LF stand at its end
  bool folded_ = false;      // a line of it begins with a blank
  Request request_;
  std::uint64_t body_left_ = 0;  // by Content-Length
  ChunkedDecoder chunked_;
};

}  // namespace rq::http
