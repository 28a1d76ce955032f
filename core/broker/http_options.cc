#include "core/broker/http_options.h"

#include <algorithm>
#include <string>

#include "core/base/text.h"

namespace rq::broker {
namespace {

std::string_view client_auth_text(ClientAuth policy) {
  switch (policy) {
    case ClientAuth::none:
      return "";
    case ClientAuth::request:
      return "request";
    case ClientAuth::require:
      return "require";
    case ClientAuth::require_verify:
      break;
  }
  return "require-verify";
}

std::string nanoseconds(std::uint64_t ms) { return std::to_string(ms * 1'000'000); }

// An empty text has no Content-Type, as nsqd answers it.
http::Response text(std::string_view value) { return value.empty() ? http::empty_response() : http::text_response(value); }

}  // namespace

std::optional<http::Response> further_option(const Config& config, std::string_view option) {
  const Config::Tls& tls = config.security.tls;
  if (option == "tls_cert") return text(tls.certificate_file);
  if (option == "tls_key") return text(tls.private_key_file);
  if (option == "tls_root_ca_file") return text(tls.client_ca_file.value_or(""));
  if (option == "tls_client_auth_policy") return text(client_auth_text(tls.effective_client_auth()));
  // 0 not required, 1 required but for HTTP (D-04).
  if (option == "tls_required") return http::json_response(tls.required ? "1" : "0");
  // The numbers of the TLS protocol.
  if (option == "tls_min_version") return http::json_response(tls.min_version == TlsVersion::tls1_2 ? "771" : "772");
  if (option == "mem_queue_size") return http::json_response(std::to_string(config.queue.ephemeral_queue_messages));
  if (option == "sync_every") return http::json_response(std::to_string(config.queue.relaxed_sync_messages));
  if (option == "sync_timeout") return http::json_response(nanoseconds(config.queue.relaxed_sync_interval_ms));
  if (option == "e2e_processing_latency_percentiles") return http::json_response("[]");
  const std::uint64_t auth_ms = config.limits.auth_timeout_ms;
  if (option == "http_client_connect_timeout") return http::json_response(nanoseconds(std::min<std::uint64_t>(auth_ms, 2'000)));
  if (option == "http_client_request_timeout") return http::json_response(nanoseconds(auth_ms));
  return std::nullopt;
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  const std::string name = lower(text);
  if (name == "debug") return LogLevel{io::Level::debug};
  if (name == "info") return LogLevel{io::Level::info};
  if (name == "warn") return LogLevel{io::Level::warn};
  if (name == "error") return LogLevel{io::Level::error};
  if (name == "fatal") return LogLevel{std::nullopt};
  return std::nullopt;
}

int log_level_number(const LogLevel& level) { return level.least ? static_cast<int>(*level.least) + 1 : 5; }

}  // namespace rq::broker
