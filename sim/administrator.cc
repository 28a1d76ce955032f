#include "sim/administrator.h"

#include <algorithm>
#include <boost/json.hpp>

#include "sim/http_text.h"

namespace rq::sim {
namespace {
constexpr std::int64_t kCalmGap = 200 * kMillisecond;

bool deletes(ledger::Removal what) { return what == ledger::Removal::delete_channel || what == ledger::Removal::delete_topic; }

struct Pause {
  std::string topic, channel;
  bool paused = false;
};
std::optional<Pause> pause_of(std::string_view target) {
  const std::size_t path = target.find("pause?topic=");
  if (path == std::string_view::npos) return std::nullopt;
  const std::string_view names = target.substr(path + 12);
  const std::size_t end = names.find("&channel=");
  return Pause{std::string(names.substr(0, end)), end == std::string_view::npos ? "" : std::string(names.substr(end + 9)),
               target[path - 1] == '/'};
}
}  // namespace

Administrator::Administrator(Stage& stage, io::Host& host, std::string address) : Actor(stage, host, std::move(address)) {}

void Administrator::on_time(Now now) {
  if (!target_.empty() || now.mono < next_) return;
  if (stage_.calm) return choose_calm();
  if (stage_.swarm.admin_gap_ms == 0) return;
  choose(now);
}

Instant Administrator::next_time() const {
  const bool idle = stage_.swarm.admin_gap_ms == 0 && !stage_.calm;
  return !target_.empty() || idle ? Instant::never() : next_;
}

void Administrator::choose(Now now) {
  const std::uint64_t mean_us = static_cast<std::uint64_t>(stage_.swarm.admin_gap_ms) * 1'000;
  next_ = now.mono + static_cast<std::int64_t>(random_.below(2 * mean_us + 1)) * kMicrosecond;
  topic_ = "topic" + std::to_string(random_.below(static_cast<std::uint64_t>(stage_.swarm.topics)));
  channel_ = "channel" + std::to_string(random_.below(static_cast<std::uint64_t>(stage_.swarm.channels)));
  const std::string of_topic = "?topic=" + topic_, of_channel = of_topic + "&channel=" + channel_;
  method_ = "POST";
  what_.reset();
  if (random_.chance(static_cast<std::uint32_t>(stage_.swarm.removals))) {
    switch (random_.below(8)) {
      case 0:
        what_ = ledger::Removal::delete_topic;
        target_ = "/topic/delete" + of_topic;
        return;
      case 1:
        what_ = ledger::Removal::empty_topic;
        target_ = "/topic/empty" + of_topic;
        return;
      case 2:
      case 3:
        what_ = ledger::Removal::delete_channel;
        target_ = "/channel/delete" + of_channel;
        return;
      default:
        what_ = ledger::Removal::empty_channel;
        target_ = "/channel/empty" + of_channel;
        return;
    }
  }
  const bool unpause = !paused_.empty() && random_.chance(700);
  if (unpause) {
    target_ = *paused_.begin();
    return;
  }
  switch (random_.below(6)) {
    case 0:
      target_ = "/topic/pause" + of_topic;
      paused_.insert("/topic/unpause" + of_topic);
      return;
    case 1:
    case 2:
      target_ = "/channel/pause" + of_channel;
      paused_.insert("/channel/unpause" + of_channel);
      return;
    case 3:
      method_ = "GET";
      target_ = "/stats?format=json";
      return;
    case 4:
      method_ = "GET";
      target_ = "/metrics";
      return;
    default:
      method_ = "GET";
      target_ = "/stats";
      return;
  }
}

void Administrator::choose_calm() {
  what_.reset();
  method_ = paused_.empty() ? "GET" : "POST";
  target_ = paused_.empty() ? "/stats?format=json" : *paused_.begin();
}

void Administrator::on_connected(Now now) {
  if (what_ && !removal_) {
    removal_ = stage_.ledger.removal_sent(*what_, topic_, channel_, now);
    if (deletes(*what_)) watch_.removal_sent(topic_, removed_channel());
  }
  if (const auto pause = pause_of(target_)) watch_.pause_sent(pause->topic, pause->channel);
  link_->send(http_request(method_, target_, "", {}));
}

void Administrator::on_bytes(Now now) {
  const std::optional<HttpReply> reply = parse_reply(link_->inbox, false);
  if (!reply) return;
  link_->inbox.clear();
  link_->close();
  finished(reply->status, reply->body, now);
}

void Administrator::on_closed(Now now) {
  if (!target_.empty()) finished(0, "", now);
}

void Administrator::finished(int status, const std::string& body, Now now) {
  stage_.world.note(target_ + " " + std::to_string(status));
  if (removal_) stage_.ledger.removal_ended(*removal_, status == 200, now);
  if (removal_ && deletes(*what_)) watch_.removal_ended(topic_, removed_channel(), status == 200 || status == 404);
  removal_.reset();
  if (const auto pause = pause_of(target_))
    watch_.pause_ended(pause->topic, pause->channel, status == 200 ? std::optional(pause->paused) : std::nullopt, status != 0);
  // 404: the Topic or Channel is gone, with its pause. 503 and 429: not now.
  if (status == 200 || status == 404) paused_.erase(target_);
  if (status != 0 && status != 200 && status != 404 && status != 503 && status != 429)
    stage_.complain(target_ + " answered " + std::to_string(status) + " " + body);
  if (status == 200 && target_ == "/stats?format=json") read_stats(body, now);
  target_.clear();
  if (stage_.calm) next_ = now.mono + kCalmGap;
}

std::string Administrator::removed_channel() const {
  return *what_ == ledger::Removal::delete_channel ? channel_ : std::string();
}

void Administrator::read_stats(const std::string& body, Now now) {
  boost::system::error_code error;
  const boost::json::value document = boost::json::parse(body, error);
  if (error || !document.is_object() || !document.as_object().contains("topics"))
    return stage_.complain("/stats is not a document with topics");
  if (const std::string wrong = watch_.look(document); !wrong.empty()) stage_.complain("/stats: " + wrong);
  if (stage_.calm) read_backlog(document, now);
}

void Administrator::read_backlog(const boost::json::value& document, Now now) {
  Backlog backlog;
  backlog.at = now.mono;
  // A pause whose answer was lost may have come late: what shows as paused is unpaused again.
  const auto text_of_key = [](const boost::json::value& value, const char* key) {
    return std::string(value.at(key).as_string());
  };
  for (const boost::json::value& topic : document.at("topics").as_array()) {
    const std::string topic_name = text_of_key(topic, "topic_name");
    backlog.names.insert(topic_name);
    for (const boost::json::value& channel : topic.at("channels").as_array())
      backlog.names.insert(topic_name + " " + text_of_key(channel, "channel_name"));
    if (topic_name.starts_with("managed")) continue;  // the control plane's
    const std::string of_topic = "?topic=" + topic_name;
    if (topic.at("paused").as_bool()) paused_.insert("/topic/unpause" + of_topic);
    for (const boost::json::value& channel : topic.at("channels").as_array()) {
      const std::string name = text_of_key(channel, "channel_name");
      if (name.ends_with("#ephemeral")) continue;
      if (channel.at("paused").as_bool()) paused_.insert("/channel/unpause" + of_topic + "&channel=" + name);
      for (const char* key : {"depth", "in_flight_count", "deferred_count"})
        backlog.durable += channel.at(key).to_number<std::uint64_t>();
    }
  }
  backlog_ = std::move(backlog);
}

}  // namespace rq::sim
