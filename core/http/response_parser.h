// An HTTP/1.1 response as bytes arrive, for the few requests that the Broker makes itself (AUTH).
//
//  I1 Memory: at most head_bytes_max for the head and body_bytes_max for the body; a declared length is checked before any of the
//     body is kept.
//  I2 How the bytes are cut into pieces changes nothing.
//  I3 Interim answers (1xx) are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/http/chunked_decoder.h"

namespace rq::http {

class ResponseParser final : private BodySink {
 public:
  ResponseParser(std::size_t head_bytes_max, std::uint64_t body_bytes_max)
      : head_bytes_max_(head_bytes_max), body_bytes_max_(body_bytes_max) {}

  enum class Stage : std::uint8_t { head, body, complete, failed };
  Stage stage() const { return stage_; }
  void feed(ConstBuf input);  // what follows a complete response is ignored
  void end_of_input();        // the peer finished writing: that ends a body without a length

  int status() const { return status_; }  // from stage body on
  const std::string& body() const { return body_; }

 private:
  void on_body(ConstBuf bytes) override;
  std::size_t feed_head(std::string_view input);
  bool parse_head(std::string_view head);
  bool parse_field(std::string_view name, std::string_view value);
  void fail() { stage_ = Stage::failed; }

  std::size_t head_bytes_max_;
  std::uint64_t body_bytes_max_;
  Stage stage_ = Stage::head;
  int status_ = 0;
  std::string head_, body_;
  bool is_chunked_ = false;
  std::optional<std::uint64_t> length_;
  ChunkedDecoder chunked_;
};

}  // namespace rq::http
