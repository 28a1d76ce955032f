#include "sim/producer.h"

namespace rq::sim {
namespace {
constexpr std::uint64_t kBatchMax = 8;
}

Producer::Producer(Stage& stage, io::Host& host, std::string address, std::uint32_t number)
    : Actor(stage, host, std::move(address)), number_(number) {}

bool Producer::more() const { return stage_.publish && sent_ < static_cast<std::uint64_t>(stage_.swarm.requests); }

std::int64_t Producer::silence_ns() const { return 3 * stage_.swarm.heartbeat_ms * kMillisecond; }

void Producer::on_connected(Now now) {
  if (random_.chance(512)) {
    introduce(R"("client_id":"p","heartbeat_interval":)" + std::to_string(stage_.swarm.heartbeat_ms));
    outstanding_.push_back(~ledger::PublishRef{0});  // its answer
  } else {
    link_->send("  V2");
  }
  next_publish_ = now.mono;
}

// Unique for ever, and recognisable in a report.
std::string Producer::body() {
  std::string text = "p" + std::to_string(number_) + "-" + std::to_string(++bodies_) + "-";
  const auto longest = static_cast<std::uint64_t>(stage_.swarm.body_bytes_max);
  const std::uint64_t size = random_.chance(100) ? longest : text.size() + random_.below(longest);
  while (text.size() < std::min(size, longest)) text.push_back(static_cast<char>(random_.below(256)));
  return text;
}

void Producer::on_time(Now now) {
  if (!ready() || !introduced() || now.mono < next_publish_ || !more()) return;
  if (outstanding_.size() >= static_cast<std::size_t>(stage_.swarm.pipeline)) return;
  publish(now);
  const std::uint64_t mean_us = static_cast<std::uint64_t>(stage_.swarm.publish_gap_ms) * 1'000;
  const bool burst = stage_.swarm.pipeline > 1 && random_.chance(700);
  next_publish_ = now.mono + static_cast<std::int64_t>(burst ? 0 : random_.below(2 * mean_us + 1)) * kMicrosecond;
}

void Producer::publish(Now now) {
  ++sent_;
  const auto topics = static_cast<std::uint64_t>(stage_.swarm.topics);
  const std::uint64_t which = random_.below(topics + (stage_.swarm.ephemeral > 0 ? 1 : 0));
  const std::string topic = which == topics ? std::string(kEphemeralTopic) : "topic" + std::to_string(which);
  std::vector<std::string> bodies{body()};
  std::int64_t defer_ms = 0;
  const auto batch_bytes = static_cast<std::size_t>(stage_.swarm.body_bytes);
  if (random_.chance(static_cast<std::uint32_t>(stage_.swarm.mpub))) {
    std::size_t bytes = 4 + 4 + bodies[0].size();
    const std::uint64_t count = 1 + random_.below(kBatchMax);
    while (bodies.size() < count) {
      std::string more_bytes = body();
      bytes += 4 + more_bytes.size();
      if (bytes > batch_bytes) break;
      bodies.push_back(std::move(more_bytes));
    }
    if (8 + bodies[0].size() <= batch_bytes) {
      say(mpub_command(topic, bodies));
      outstanding_.push_back(stage_.ledger.publish_sent(topic, bodies, 0, now));
      return;
    }
  }
  if (random_.chance(static_cast<std::uint32_t>(stage_.swarm.dpub))) {
    defer_ms = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(stage_.swarm.dpub_ms) + 1));
    say(dpub_command(topic, defer_ms, bodies[0]));
  } else {
    say(pub_command(topic, bodies[0]));
  }
  outstanding_.push_back(stage_.ledger.publish_sent(topic, bodies, defer_ms * kMillisecond, now));
}

void Producer::on_frame(Frame& frame, Now now) {
  if (frame.payload == "_heartbeat_") return;
  // The first command, or the rest of one, came too late: the connection closes, and what is outstanding stays open.
  if (frame.is_error("E_INVALID") && frame.payload.ends_with("timed out")) return;
  if (outstanding_.empty()) {
    stage_.complain("a producer got an answer that it did not wait for: " + frame.payload);
    return;
  }
  const ledger::PublishRef publish = outstanding_.front();
  outstanding_.pop_front();
  if (publish == ~ledger::PublishRef{0}) {
    if (frame.type != 0) stage_.complain("IDENTIFY was refused: " + frame.payload);
    return;
  }
  if (frame.type == 0 && frame.payload == "OK") {
    stage_.ledger.publish_answered(publish, ledger::Answer::ok, now);
    return;
  }
  const bool definite = frame.is_error("E_PUB_RETRY") || frame.is_error("E_THROTTLED") || frame.is_error("E_DRAINING");
  const bool storage = frame.is_error("E_PUB_FAILED") || frame.is_error("E_MPUB_FAILED") || frame.is_error("E_DPUB_FAILED");
  if (!definite && !storage) stage_.complain("a producer got " + frame.payload);
  stage_.ledger.publish_answered(publish, definite ? ledger::Answer::refused : ledger::Answer::ambiguous, now);
}

void Producer::on_closed(Now now) {
  for (const ledger::PublishRef publish : outstanding_)
    if (publish != ~ledger::PublishRef{0}) stage_.ledger.publish_answered(publish, ledger::Answer::ambiguous, now);
  outstanding_.clear();
}

Instant Producer::next_time() const {
  if (!ready() || !introduced() || !more() || outstanding_.size() >= static_cast<std::size_t>(stage_.swarm.pipeline))
    return Instant::never();
  return next_publish_;
}

}  // namespace rq::sim
