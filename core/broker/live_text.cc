#include "core/broker/live_text.h"

#include "core/base/json_writer.h"
#include "core/storage/json_reader.h"

namespace rq::broker {

std::string auth_required_control() { return R"({"type":"auth_required"})"; }

std::string ready_control(std::string_view topic, std::uint64_t subscription) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("type").value("ready").key("topic").value(topic);
  json.key("subscription_id").value(std::to_string(subscription)).key("start").value("tail").key("ack").value("auto");
  json.end_object();
  return out;
}

std::string error_control(const LiveEnd& end) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("type").value("error").key("code").value(end.code).key("detail").value(end.detail).end_object();
  return out;
}

std::optional<std::string> auth_secret(std::string_view text) {
  using storage::JsonObject;
  std::string type, secret;
  storage::JsonText type_target(type), secret_target(secret);
  JsonObject document;
  document.add("type", type_target);
  document.add("secret", secret_target);
  if (storage::read_json(bytes_of(text), document)) return std::nullopt;
  if (type != "auth" || secret.empty()) return std::nullopt;
  return secret;
}

std::optional<std::string> bearer_secret(std::string_view authorization) {
  constexpr std::string_view kPrefix = "Bearer ";
  if (!authorization.starts_with(kPrefix) || authorization.size() == kPrefix.size()) return std::nullopt;
  return std::string(authorization.substr(kPrefix.size()));
}

void put_live_header(std::string& out, std::uint16_t attempts, std::int64_t timestamp_ns, std::uint64_t id) {
  out += "RQW1";
  put16(out, static_cast<std::uint16_t>(kLiveHeaderBytes));
  put16(out, attempts);
  put64(out, static_cast<std::uint64_t>(timestamp_ns));
  put64(out, id);
}

}  // namespace rq::broker
