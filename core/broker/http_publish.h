// What stands in a POST /pub or /mpub, in the order of checks of page 10 section 6.3, and the answers to what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"
#include "core/http/response.h"
#include "core/queue/engine.h"

namespace rq::broker {

struct PublishLimits {
  std::uint64_t message_bytes_max = 0;
  std::uint64_t body_bytes_max = 0;
  std::uint64_t defer_ms_max = 0;
};

struct PublishRequest {
  std::string topic;
  std::vector<Slice> bodies;  // parts of the request's body; empty: nothing to publish, the answer is OK
  std::int64_t defer_ms = 0;
};
// Either a refusal or a request.
struct PublishParse {
  std::optional<http::Response> refusal;
  PublishRequest request;
};
PublishParse parse_pub(std::string_view query, const Slice& body, const PublishLimits& limits);
PublishParse parse_mpub(std::string_view query, const Slice& body, const PublishLimits& limits);
// The Topic of a batch is looked at before its body is read.
std::optional<http::Response> mpub_topic_refusal(std::string_view query);

// The body of a request is longer than its route allows.
http::Response body_too_long(bool batch);
http::Response outcome_response(const queue::Outcome& outcome);  // of a failed engine call

}  // namespace rq::broker
