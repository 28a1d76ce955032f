#include "core/broker/http_publish.h"

#include <charconv>

#include "core/base/bytes.h"
#include "core/http/query.h"
#include "core/storage/names.h"
#include "core/storage/types.h"

namespace rq::broker {
namespace {

PublishParse refuse(int status, std::string_view code, std::string_view detail = {}) {
  return {http::error_response(status, code, detail), {}};
}

// The query, or the refusal (check 5 of page 10 section 6.3).
struct TopicParse {
  std::optional<http::Response> refusal;
  http::Query query;
  std::string topic;
};
TopicParse parse_topic(std::string_view text) {
  auto query = http::Query::parse(text);
  if (!query) return {http::error_response(400, "INVALID_REQUEST"), {}, {}};
  const std::string* topic = query->find("topic");
  if (topic == nullptr) return {http::error_response(400, "MISSING_ARG_TOPIC"), {}, {}};
  if (!storage::valid_name(*topic)) return {http::error_response(400, "INVALID_TOPIC"), {}, {}};
  std::string name = *topic;
  return {std::nullopt, std::move(*query), std::move(name)};
}

// A signed decimal of milliseconds within 0..max; a sign is allowed.
std::optional<std::int64_t> parse_defer(std::string_view text, std::uint64_t max) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (value < 0 || static_cast<std::uint64_t>(value) > max) return std::nullopt;
  return value;
}

PublishParse split_lines(PublishRequest request, const Slice& body, const PublishLimits& limits) {
  const std::string_view text = text_of(body.bytes());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    const std::size_t length = end - at;
    if (length > limits.message_bytes_max) return refuse(413, "MSG_TOO_BIG");
    if (length > 0) {
      if (request.bodies.size() == storage::kBatchMessagesMax) return refuse(400, "E_BAD_BODY", "more than 65536 messages");
      request.bodies.push_back(body.sub(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length)));
    }
    at = end + 1;
  }
  return {std::nullopt, std::move(request)};
}

// count, then count times (size, bytes), all 32-bit big-endian; bytes behind the last message are ignored (D-30a).
PublishParse split_binary(PublishRequest request, const Slice& body, const PublishLimits& limits) {
  const std::uint64_t most = std::min<std::uint64_t>(storage::kBatchMessagesMax, (limits.body_bytes_max - 4) / 5);
  if (body.size() < 4) return refuse(413, "BAD_BODY");
  const std::uint32_t count = load32(body.data());
  if (count == 0 || count > most) return refuse(413, "BAD_BODY");
  std::uint32_t at = 4;
  request.bodies.reserve(std::min<std::uint32_t>(count, body.size() / 5));
  for (std::uint32_t i = 0; i < count; ++i) {
    if (body.size() - at < 4) return refuse(413, "BAD_MESSAGE");
    const std::uint32_t length = load32(body.data() + at);
    at += 4;
    if (length == 0 || length > limits.message_bytes_max || length > body.size() - at) return refuse(413, "BAD_MESSAGE");
    request.bodies.push_back(body.sub(at, length));
    at += length;
  }
  return {std::nullopt, std::move(request)};
}

}  // namespace

PublishParse parse_pub(std::string_view query, const Slice& body, const PublishLimits& limits) {
  if (body.empty()) return refuse(400, "MSG_EMPTY");
  TopicParse topic = parse_topic(query);
  if (topic.refusal) return {std::move(topic.refusal), {}};
  PublishRequest request{std::move(topic.topic), {}, 0};
  if (const std::string* defer = topic.query.find("defer")) {
    const auto value = parse_defer(*defer, limits.defer_ms_max);
    if (!value) return refuse(400, "INVALID_DEFER");
    request.defer_ms = *value;
  }
  request.bodies.push_back(body);
  return {std::nullopt, std::move(request)};
}

std::optional<http::Response> mpub_topic_refusal(std::string_view query) { return parse_topic(query).refusal; }

PublishParse parse_mpub(std::string_view query, const Slice& body, const PublishLimits& limits) {
  TopicParse topic = parse_topic(query);
  if (topic.refusal) return {std::move(topic.refusal), {}};
  PublishRequest request{std::move(topic.topic), {}, 0};
  const std::string* binary = topic.query.find("binary");
  const bool text_mode = binary == nullptr || *binary == "0" || *binary == "false";
  return text_mode ? split_lines(std::move(request), body, limits) : split_binary(std::move(request), body, limits);
}

http::Response body_too_long(bool batch) { return http::error_response(413, batch ? "BODY_TOO_BIG" : "MSG_TOO_BIG"); }

http::Response outcome_response(const queue::Outcome& outcome) {
  using queue::Code;
  switch (outcome.code) {
    case Code::bad_topic_name:
      return http::error_response(400, "INVALID_TOPIC", outcome.detail);
    case Code::bad_channel_name:
      return http::error_response(400, "INVALID_ARG_CHANNEL", outcome.detail);
    case Code::topic_not_found:
      return http::error_response(404, "TOPIC_NOT_FOUND");
    case Code::channel_not_found:
      return http::error_response(404, "CHANNEL_NOT_FOUND");
    case Code::topic_limit:
    case Code::channel_limit:
    case Code::worker_limit:
    case Code::consumer_limit:
      return http::error_response(429, "E_THROTTLED", outcome.detail);
    case Code::topic_retiring:
      return http::error_response(409, "E_TOPIC_RETIRING", outcome.detail);
    case Code::exiting:
      return http::error_response(503, "EXITING");
    case Code::batch_too_large:
      return http::error_response(413, "BODY_TOO_BIG", outcome.detail);
    case Code::message_too_large:
      return http::error_response(413, "MSG_TOO_BIG");
    case Code::empty_message:
      return http::error_response(400, "MSG_EMPTY");
    case Code::invalid_policy:
      return http::error_response(400, "E_BAD_TOPIC_POLICY", outcome.detail);
    case Code::topic_tombstoned:
      return http::error_response(409, "E_TOPIC_TOMBSTONED", outcome.detail);
    case Code::channel_tombstoned:
      return http::error_response(409, "E_CHANNEL_TOMBSTONED", outcome.detail);
    case Code::channel_not_idle:
      return http::error_response(409, "E_CHANNEL_NOT_IDLE", outcome.detail);
    case Code::management_unavailable:
      return http::error_response(503, "E_MANAGEMENT_UNAVAILABLE", outcome.detail);
    case Code::revision_conflict:
      return http::error_response(409, "E_REVISION_CONFLICT", outcome.detail);
    case Code::operation_conflict:
      return http::error_response(409, "E_OPERATION_CONFLICT", outcome.detail);
    case Code::invalid_tombstone:
      return http::error_response(400, "E_BAD_TOMBSTONE", outcome.detail);
    case Code::storage:
      return http::error_response(503, "E_STORAGE", outcome.detail);
    case Code::ok:
    case Code::sequence_exhausted:
    case Code::not_in_flight:
    case Code::not_owner:
      break;
  }
  return http::error_response(500, "E_INTERNAL", outcome.detail);
}

}  // namespace rq::broker
