#include "bench/load/phase.h"

#include <fmt/format.h>

#include <algorithm>

namespace rq::load {
namespace {
constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
}

Phase::Phase(io::Host& host, const LoadOptions& options, RunNames names, std::uint64_t nonce, Now now)
    : host_(host),
      options_(options),
      names_(std::move(names)),
      body_(static_cast<std::uint32_t>(options.message_bytes), nonce),
      schedule_(options.rate.value_or(1), options.batch_size),
      began_(now.mono) {
  messages_ = options_.duration_seconds ? kUnlimited : options_.messages;
  const auto batch = static_cast<std::uint32_t>(options_.batch_size);
  std::uint32_t index = 0;
  for (std::uint64_t i = 0; i < options_.producers; ++i)
    producers_.emplace_back(host_, pool_, active_, index++, names_.topic, body_, batch);
  for (std::uint64_t i = 0; i < options_.consumers; ++i)
    consumers_.emplace_back(host_, pool_, active_, index++, body_, deliveries_);
  for (Producing& each : producers_) each.link.open(options_.address, now.mono + kConnectNsMax);
  for (Consuming& each : consumers_) each.link.open(options_.address, now.mono + kConnectNsMax);
}

const char* Phase::state_name() const {
  static constexpr const char* kNames[] = {"connecting", "publishing", "draining", "stopping", "stopping", "finished"};
  return kNames[static_cast<int>(state_)];
}

void Phase::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}
void Phase::fail(const char* what, std::size_t index, const std::string& why) { fail(fmt::format("{} {} {}", what, index, why)); }

void Phase::settle(Now now) {
  for (std::size_t i = 0; i < active_.size(); ++i) handle(*active_[i], now);
  if (error_.empty()) drive(now);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    active_[i]->unmark();
    active_[i]->submit();
  }
  active_.clear();
}

// ---- connections

void Phase::lost(const char* what, std::size_t index, const Link& link) {
  const char* why = io::errc_name(link.why().code);
  if (link.connected()) return fail(what, index, fmt::format("lost its connection: {}", why));
  fail(what, index, fmt::format("cannot connect to {}: {}", options_.address, why));
}

void Phase::handle(Link& link, Now now) {
  if (link.index() < producers_.size()) return handle_producer(producers_[link.index()], now);
  handle_consumer(consumers_[link.index() - producers_.size()]);
}

void Phase::handle_producer(Producing& producer, Now now) {
  const std::size_t index = producer.link.index();
  if (producer.link.ended() && state_ < State::closing) return lost("producer", index, producer.link);
  if (producer.link.connected() && !producer.ready) {
    producer.ready = true;
    ++ready_;
  }
  if (const Slice data = producer.link.take(); !data.empty()) {
    const Producer::Answered answered = producer.machine.on_bytes(data.bytes(), producer.link.text());
    if (!producer.machine.error().empty()) return fail("producer", index, producer.machine.error());
    if (answered.messages > 0) {
      latency_.record_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - answered.since) / kMicrosecond));
      result_.published += answered.messages;
      ++answered_;
      --waiting_;
      moved_ = now.mono;
    }
  }
  if (state_ == State::publishing) feed(producer, index, now);
}

void Phase::handle_consumer(Consuming& consumer) {
  const std::size_t index = consumer.link.index() - producers_.size();
  if (consumer.link.ended()) {
    const bool in_order = consumer.machine.close_wait() && consumer.link.why().code == io::Errc::eof;
    if (!in_order && state_ < State::closing) return lost("consumer", index, consumer.link);
    if (!consumer.done) ++consumers_done_;
    consumer.done = true;
    return;
  }
  if (consumer.link.connected() && !consumer.asked) {
    consumer.asked = true;
    consumer.machine.subscribe(names_.topic, names_.channel, consumer.link.text());
  }
  if (const Slice data = consumer.link.take(); !data.empty()) consumer.machine.on_bytes(data.bytes(), consumer.link.text());
  if (!consumer.machine.error().empty()) return fail("consumer", index, consumer.machine.error());
  if (consumer.machine.subscribed() && !consumer.ready) {
    consumer.ready = true;
    ++ready_;
  }
  if (consumer.machine.close_wait()) consumer.link.shutdown_write();
}

// ---- the run

void Phase::drive(Now now) {
  if (state_ == State::connecting && ready_ == producers_.size() + consumers_.size()) start(now);
  if (state_ == State::publishing) {
    if (options_.fixed_rate()) arrive(now);
    if (published_all(now)) {
      result_.publish_ns = moved_ - started_;
      limit_ = now.mono + patience();
      state_ = State::draining;
      if (result_.published == 0) return fail("no message was published");
    }
  }
  if (state_ == State::draining && (consumers_.empty() || deliveries_.unique.count() >= result_.published || now.mono >= limit_))
    stop(now);
  if (state_ == State::stopping && consumers_done_ == consumers_.size()) close();
  if (state_ == State::closing && all_idle()) state_ = State::finished;
  if (!deliveries_.counting) return;
  result_.unique = deliveries_.unique.count();
  result_.total = deliveries_.total;
}

void Phase::start(Now now) {
  state_ = State::publishing;
  started_ = moved_ = now.mono;
  publish_end_ =
      options_.duration_seconds ? now.mono + static_cast<std::int64_t>(*options_.duration_seconds) * kSecond : Instant::never();
  arrivals_ = options_.duration_seconds ? schedule_.commands_within(*options_.duration_seconds)
                                        : (options_.messages + options_.batch_size - 1) / options_.batch_size;
  if (options_.fixed_rate()) return;
  for (std::size_t i = 0; i < producers_.size(); ++i) feed(producers_[i], i, now);
}

void Phase::arrive(Now now) {
  for (; arrived_ < arrivals_ && started_ + schedule_.due_ns(arrived_) <= now.mono; ++arrived_) {
    const std::size_t index = arrived_ % producers_.size();
    ++producers_[index].due;
    feed(producers_[index], index, now);
  }
}

void Phase::feed(Producing& producer, std::size_t index, Now now) {
  if (producer.machine.waiting() || producer.link.command_pending() || taken_ == messages_) return;
  Instant since = now.mono;
  if (options_.fixed_rate()) {
    if (producer.sent == producer.due) return;
    since = started_ + schedule_.due_ns(producer.sent * producers_.size() + index);
  } else if (now.mono >= publish_end_) {
    return;
  }
  const auto count = static_cast<std::uint32_t>(std::min(options_.batch_size, messages_ - taken_));
  producer.link.send_command(producer.machine.publish(taken_, count, since));
  taken_ += count;
  ++producer.sent;
  ++waiting_;
  moved_ = now.mono;
}

bool Phase::published_all(Now now) const {
  if (waiting_ > 0) return false;
  return options_.fixed_rate() ? answered_ == arrivals_ : taken_ == messages_ || now.mono >= publish_end_;
}

void Phase::stop(Now now) {
  result_.drain_ns = consumers_.empty() ? 0 : now.mono - (started_ + result_.publish_ns);
  result_.unique = deliveries_.unique.count();
  result_.total = deliveries_.total;
  result_.drain_timed_out = !consumers_.empty() && result_.unique < result_.published;
  deliveries_.counting = !result_.drain_timed_out;
  state_ = State::stopping;
  limit_ = now.mono + kStopNsMax;
  for (Consuming& each : consumers_) each.machine.stop(each.link.text());
}

void Phase::close() {
  state_ = State::closing;
  for (Producing& each : producers_) each.link.close();
  for (Consuming& each : consumers_) each.link.close();
}

bool Phase::all_idle() const {
  const auto idle = [](const auto& each) { return each.link.idle(); };
  return std::all_of(producers_.begin(), producers_.end(), idle) && std::all_of(consumers_.begin(), consumers_.end(), idle);
}

// ---- limits

// A fixed-rate run that is still behind so long after its last arrival was due has failed.
Instant Phase::overrun() const {
  if (!options_.fixed_rate()) return Instant::never();
  return started_ + schedule_.due_ns(arrivals_) + patience();
}

void Phase::expire(Now now) {
  if (!error_.empty()) return;
  if (state_ == State::connecting && now.mono >= began_ + kSubscribeNsMax)
    fail(fmt::format("{} of {} connections are not ready after {} s", producers_.size() + consumers_.size() - ready_,
                     producers_.size() + consumers_.size(), kSubscribeNsMax / kSecond));
  if (state_ == State::publishing) {
    if (waiting_ > 0 && now.mono >= moved_ + patience())
      fail(fmt::format("nothing was acknowledged for {} s", options_.drain_timeout_seconds));
    if (now.mono >= overrun())
      fail(fmt::format("the rate cannot be kept: {} of {} commands were acknowledged", answered_, arrivals_));
  }
  if (state_ != State::stopping || now.mono < limit_) return;
  if (result_.drain_timed_out) return close();  // what is missing is known
  fail(fmt::format("{} consumers are not stopped after {} s", consumers_.size() - consumers_done_, kStopNsMax / kSecond));
}

Instant Phase::next_deadline() const {
  if (!error_.empty()) return Instant::never();
  switch (state_) {
    case State::connecting:
      return began_ + kSubscribeNsMax;
    case State::publishing: {
      Instant next = options_.fixed_rate() ? overrun() : Instant::never();
      if (options_.fixed_rate() && arrived_ < arrivals_) next = std::min(next, started_ + schedule_.due_ns(arrived_));
      if (waiting_ > 0) return std::min(next, moved_ + patience());
      return std::min(next, publish_end_);
    }
    case State::draining:
    case State::stopping:
      return limit_;
    default:
      return Instant::never();
  }
}

}  // namespace rq::load
