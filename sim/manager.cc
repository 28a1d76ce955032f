#include "sim/manager.h"

#include <boost/json.hpp>
#include <cstdio>
#include <utility>

namespace rq::sim {
namespace {

constexpr int kPollsMax = 20;
constexpr std::int64_t kTokenReloadNs = 3 * kSecond;  // B-56, and what a slow disk adds

std::string operation_id(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "operation-%010llu", static_cast<unsigned long long>(number));
  return text;
}

std::string quoted(const char* key, const std::string& value) { return std::string("\"") + key + "\":\"" + value + "\""; }

}  // namespace

Manager::Manager(Stage& stage, io::Host& host, std::string address) : Actor(stage, host, std::move(address)) {}

void Manager::on_time(Now now) {
  if (doing_ == Doing::idle && now.mono >= next_) begin(Doing::health, "GET", "/v1/health");
}

void Manager::pause() {
  const std::uint64_t mean_us = stage_.calm ? 100'000 : static_cast<std::uint64_t>(stage_.swarm.manage_gap_ms) * 1'000;
  next_ = host_.clock.now() + static_cast<std::int64_t>(1 + random_.below(2 * mean_us + 1)) * kMicrosecond;
  doing_ = Doing::idle;
}

void Manager::begin(Doing doing, std::string method, std::string target, std::string body) {
  doing_ = doing;
  method_ = std::move(method);
  target_ = std::move(target);
  body_ = std::move(body);
}

// The fences are known: what next?
void Manager::choose(Now now) {
  if (drained_ && (stage_.calm || polls_ >= kPollsMax || stage_.quiesced_at != Instant::never())) {
    stage_.quiesced_at = Instant::never();  // from here on publishing may go on
    return begin(Doing::lift, "POST", "/v1/drain", R"({"enabled":false})");
  }
  if (drained_) {
    ends_at_poll_ = stage_.broker_ends;
    return begin(Doing::poll, "GET", "/v1/drain");
  }
  if (pending_) return begin(Doing::operation, "POST", path_, request_);
  if (stage_.calm) return pause();
  if (!known_.empty() && random_.chance(200)) {
    repeated_ = random_.below(known_.size());
    return begin(Doing::repetition, "POST", known_[repeated_].path, known_[repeated_].body);
  }
  if (random_.chance(100)) {
    drained_ = true;
    polls_ = 0;
    return begin(Doing::drain, "POST", "/v1/drain", R"({"freeze_deliveries":true})");
  }
  draw_operation(now);
  begin(Doing::revision, "GET", "/v1/registry/head");
}

void Manager::draw_operation(Now now) {
  static constexpr const char* kActions[] = {"create", "create", "pause", "unpause", "empty", "delete", "tombstone"};
  const std::string action = kActions[random_.below(7)];
  topic_ = "managed" + std::to_string(random_.below(2));
  const bool on_channel = random_.chance(400);
  path_ = std::string("/v1/manage/") + (on_channel ? "channels/" : "topics/") + action;
  id_ = operation_id(++number_);
  renamed_ = false;
  fields_ = quoted("topic", topic_);
  if (on_channel) fields_ += "," + quoted("channel", "workers");
  const auto ahead_ms = static_cast<std::int64_t>(random_.below(20'000));
  if (action == "delete" || action == "tombstone")
    fields_ += ",\"tombstone_until_ms\":" + std::to_string(now.wall.ms() + 1'000 + ahead_ms);
}

void Manager::send_operation() {
  request_ = "{" + quoted("operation_id", id_) + "," + fields_ + ",\"expected_revision\":" + revision_ + "}";
  pending_ = true;
  begin(Doing::operation, "POST", path_, request_);
}

void Manager::on_connected(Now now) {
  sent_ = true;
  sent_token_ = stage_.token;
  sent_at_ = now.mono;
  link_->send(
      http_request(method_, target_, body_, {{"Content-Type", "application/json"}, {"Authorization", "Bearer " + sent_token_}}));
}

void Manager::on_bytes(Now now) {
  const std::optional<HttpReply> reply = parse_reply(link_->inbox, false);
  if (!reply) return;
  link_->inbox.clear();
  link_->close();
  look_at_token(*reply);
  answered(reply->status == 401 ? HttpReply{} : *reply, now);
}

void Manager::on_closed(Now now) {
  if (sent_) answered({}, now);
}

void Manager::answered(const HttpReply& reply, Now now) {
  stage_.world.note(target_ + " " + std::to_string(reply.status));
  sent_ = false;
  const Doing done = std::exchange(doing_, Doing::idle);
  switch (done) {
    case Doing::health:
      if (reply.body.find("management_fences_stale") != std::string::npos)
        return begin(Doing::sync, "POST", "/v1/manage/fences/sync", "{}");
      if (reply.status == 0 || reply.body.find("recovering") != std::string::npos) return pause();
      return choose(now);
    case Doing::revision:
      if (reply.status != 200) break;
      revision_ = std::to_string(boost::json::parse(reply.body).at("revision").to_number<std::uint64_t>());
      return send_operation();
    case Doing::operation:
      operation_answered(reply);
      break;
    case Doing::repetition:
      if (reply.status == 200 && reply.body != known_[repeated_].answer)
        stage_.complain("a repeated operation answers " + reply.body + " and not " + known_[repeated_].answer);
      if (reply.status != 200 && reply.status != 0 && reply.status != 503)
        stage_.complain("a repeated operation is refused: " + std::to_string(reply.status) + " " + reply.body);
      break;
    case Doing::registry:
      registry_answered(reply);
      break;
    case Doing::poll:
      drain_answered(reply, now);
      break;
    case Doing::lift:
      if (reply.status == 200) drained_ = false;
      break;
    case Doing::drain:
    case Doing::sync:
    case Doing::idle:
      break;
  }
  if (doing_ == Doing::idle) pause();
}

// Whoever sends the token that has long been in its file is let in, and nobody with the one before it. A stalled disk may delay a
// reading as long as it likes.
void Manager::look_at_token(const HttpReply& reply) {
  const std::int64_t slow = kTokenReloadNs + 40 * stage_.swarm.disk_us * kMicrosecond;
  if (stage_.swarm.stall > 0 || sent_at_ - stage_.token_since < slow || target_ == "/v1/health") return;
  const bool current = sent_token_ == stage_.token;
  if (current && reply.status == 401) stage_.complain("the current token is refused on " + target_);
  if (!current && reply.status == 200) stage_.complain("a token that was replaced is accepted on " + target_);
}

// Only 200 says that it was done; no answer and 503 say nothing, so the same request goes out again. Under another id it adopts
// the pending operation, or is a new one if that was done.
void Manager::operation_answered(const HttpReply& reply) {
  const std::string& body = reply.body;
  if (reply.status == 0 || reply.status == 503) {
    if (!random_.chance(150)) return;
    id_ = operation_id(++number_);
    renamed_ = true;
    return begin(Doing::revision, "GET", "/v1/registry/head");
  }
  if (reply.status == 409 && body.find("E_REVISION_CONFLICT") != std::string::npos)
    return begin(Doing::revision, "GET", "/v1/registry/head");
  pending_ = false;
  const bool refused = reply.status == 404 || reply.status == 429 || body.find("E_BAD_TOMBSTONE") != std::string::npos ||
                       body.find("_TOMBSTONED") != std::string::npos;
  if (reply.status != 200) {
    if (!refused) stage_.complain(path_ + " answered " + std::to_string(reply.status) + " " + body);
    return;
  }
  if (!renamed_) known_.push_back({path_, request_, body});
  if (path_.ends_with("/create")) exists_[topic_] = true;
  if (path_ == "/v1/manage/topics/delete") exists_[topic_] = false;
  begin(Doing::registry, "GET", "/v1/registry");
}

void Manager::registry_answered(const HttpReply& reply) {
  if (reply.status != 200) return;
  for (const auto& [topic, exists] : exists_) {
    const bool listed = reply.body.find(quoted("name", topic)) != std::string::npos;
    if (listed != exists)
      stage_.complain(topic + (exists ? " was created but is not in the registry" : " was deleted but is in the registry"));
  }
}

void Manager::drain_answered(const HttpReply& reply, Now now) {
  ++polls_;
  if (reply.status != 200) return;
  const boost::json::value drain = boost::json::parse(reply.body);
  if (!drain.at("draining").as_bool()) {  // it was started again meanwhile
    polls_ = kPollsMax;
  } else if (drain.at("quiesced").as_bool() && ends_at_poll_ == stage_.broker_ends) {
    stage_.quiesced_at = now.mono;
  }
}

}  // namespace rq::sim
