#include "core/nsq/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace rq::nsq {

Negotiated defaults(const IdentifyLimits& limits) {
  Negotiated n;
  n.heartbeat_ms = limits.heartbeat_ms;
  n.output_buffer_timeout_ms = limits.output_buffer_timeout_ms;
  n.output_buffer_size = limits.output_buffer_size;
  n.msg_timeout_ms = limits.msg_timeout_ms;
  n.deflate_level = std::min<std::int64_t>(6, limits.max_deflate_level);
  return n;
}

namespace {
bool within(std::int64_t value, std::int64_t low, std::int64_t high) { return value >= low && value <= high; }
}  // namespace

tl::expected<Negotiated, std::string> negotiate(const Identify& wish, const Negotiated& current, const IdentifyLimits& limits) {
  const auto invalid = [](std::string_view what, std::int64_t value) {
    return tl::unexpected(fmt::format("E_BAD_BODY IDENTIFY {} ({}) is invalid", what, value));
  };
  Negotiated n = current;
  n.tls = n.snappy = n.deflate = false;  // only what follows this IDENTIFY
  if (wish.heartbeat_interval == -1 || within(wish.heartbeat_interval, 1'000, limits.max_heartbeat_ms)) {
    n.heartbeat_ms = wish.heartbeat_interval;
  } else if (wish.heartbeat_interval != 0) {
    return invalid("heartbeat interval", wish.heartbeat_interval);
  }
  if (wish.output_buffer_timeout == -1) {
    n.output_buffer_timeout_ms = 0;
  } else if (within(wish.output_buffer_timeout, limits.min_output_buffer_timeout_ms, limits.max_output_buffer_timeout_ms)) {
    n.output_buffer_timeout_ms = wish.output_buffer_timeout;
  } else if (wish.output_buffer_timeout != 0) {
    return invalid("output buffer timeout", wish.output_buffer_timeout);
  }
  if (wish.output_buffer_size == -1) {
    n.output_buffer_size = 1;
    n.output_buffer_timeout_ms = 0;
  } else if (within(wish.output_buffer_size, 64, limits.max_output_buffer_size)) {
    n.output_buffer_size = wish.output_buffer_size;
  } else if (wish.output_buffer_size != 0) {
    return invalid("output buffer size", wish.output_buffer_size);
  }
  if (!within(wish.sample_rate, 0, 99)) return invalid("sample rate", wish.sample_rate);
  n.sample_rate = wish.sample_rate;
  if (within(wish.msg_timeout, 1'000, limits.max_msg_timeout_ms)) {
    n.msg_timeout_ms = wish.msg_timeout;
  } else if (wish.msg_timeout != 0) {
    return invalid("msg timeout", wish.msg_timeout);
  }
  if (!wish.feature_negotiation) return n;

  const bool deflate = wish.deflate && limits.deflate_enabled;
  const bool snappy = wish.snappy && limits.snappy_enabled;
  if (deflate && snappy) {
    return tl::unexpected(std::string("E_IDENTIFY_FAILED cannot enable both deflate and snappy compression"));
  }
  n.tls = wish.tls_v1 && limits.tls_available;
  n.deflate = deflate;
  n.snappy = snappy;
  const std::int64_t level = deflate && wish.deflate_level > 0 ? wish.deflate_level : 6;
  n.deflate_level = std::min(level, limits.max_deflate_level);
  return n;
}

std::string_view server_version() { return "1.3.0+rustqueue." RQ_VERSION; }

std::string identify_reply(const Negotiated& n, const IdentifyLimits& limits) {
  return fmt::format(
      R"({{"max_rdy_count":{},"version":"{}","max_msg_timeout":{},"msg_timeout":{},"tls_v1":{},"deflate":{},"deflate_level":{},)"
      R"("max_deflate_level":{},"snappy":{},"sample_rate":{},"auth_required":{},"output_buffer_size":{},)"
      R"("output_buffer_timeout":{}}})",
      limits.max_rdy_count, server_version(), limits.max_msg_timeout_ms, n.msg_timeout_ms, n.tls, n.deflate, n.deflate_level,
      limits.max_deflate_level, n.snappy, n.sample_rate, limits.auth_required, n.output_buffer_size, n.output_buffer_timeout_ms);
}

}  // namespace rq::nsq
