// IDENTIFY: decoding the JSON body, checking it against the Broker's limits, and the reply (page 10 section 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace rq::nsq {

// What a client asked for. Absent fields and nulls are 0, false or empty.
struct Identify {
  std::string client_id, hostname, user_agent;  // valid UTF-8, at most kIdentifyTextBytesMax
  bool feature_negotiation = false;
  std::int64_t heartbeat_interval = 0;     // ms; 0 keeps the default, -1 switches heartbeats off
  std::int64_t output_buffer_timeout = 0;  // ms; 0 keeps, -1 off
  std::int64_t output_buffer_size = 0;     // bytes; 0 keeps, -1 unbuffered
  std::int32_t sample_rate = 0;            // percent; 0 = everything
  std::int64_t msg_timeout = 0;            // ms; 0 = the Broker's default
  bool tls_v1 = false, snappy = false, deflate = false;
  std::int64_t deflate_level = 0;  // <= 0: 6
};
inline constexpr std::size_t kIdentifyTextBytesMax = 1'024;
inline constexpr std::uint32_t kJsonDepthMax = 32;

// False when the body does not decode: E_BAD_BODY IDENTIFY failed to decode JSON body.
bool decode_identify(std::string_view json, Identify& out);

struct IdentifyLimits {
  std::int64_t heartbeat_ms = 30'000, max_heartbeat_ms = 60'000;
  std::int64_t output_buffer_timeout_ms = 250, min_output_buffer_timeout_ms = 25, max_output_buffer_timeout_ms = 30'000;
  std::int64_t output_buffer_size = 16'384, max_output_buffer_size = 65'536;
  std::int64_t msg_timeout_ms = 60'000, max_msg_timeout_ms = 900'000;
  std::int64_t max_deflate_level = 6;
  std::int64_t max_rdy_count = 2'500;
  bool snappy_enabled = true, deflate_enabled = true;  // by configuration
  bool tls_available = false;                          // a certificate is configured
  bool auth_required = false;
};

// What holds for the connection afterwards.
struct Negotiated {
  std::int64_t heartbeat_ms = 30'000;  // -1: off
  std::int64_t output_buffer_timeout_ms = 250;
  std::int64_t output_buffer_size = 16'384;
  std::int32_t sample_rate = 0;
  std::int64_t msg_timeout_ms = 60'000;
  bool tls = false, snappy = false, deflate = false;
  std::int64_t deflate_level = 6;
};

Negotiated defaults(const IdentifyLimits& limits);
// `current` are the settings before this IDENTIFY: fields that it leaves out keep them. The error is the frame's whole text.
tl::expected<Negotiated, std::string> negotiate(const Identify& wish, const Negotiated& current, const IdentifyLimits& limits);
// The JSON object of section 3.3, byte by byte.
std::string identify_reply(const Negotiated& granted, const IdentifyLimits& limits);
// The NSQ version that clients see (D-14).
std::string_view server_version();

}  // namespace rq::nsq
