// The Channel against a map-based model, over random lists of operations with restarts from a checkpoint and from WAL replay over
// an older checkpoint (page 30 sections 3 and 4, I-18 to I-24).
#include "tests/queue/channel_model.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "core/storage/replay.h"

namespace rq::queue::test {
namespace {

constexpr std::int64_t kLease = 60 * kSecond;
constexpr std::int64_t kLeaseMax = 900 * kSecond;

struct Setup {
  bool ephemeral = false;
  bool gaps = true;
  ChannelSettings settings;
};

class Run {
 public:
  explicit Run(const Setup& setup) : setup_(setup), channel_(make(start_image())), checkpoint_(channel_->image()) {
    model_.gap_max = setup.settings.max_ack_gap;
    model_.start = checkpoint_.barrier;
  }

  void step(std::uint32_t word) {
    const std::uint32_t op = word % 100;
    const std::uint32_t argument = word / 100;
    if (op < 18) {
      publish(argument);
    } else if (op < 40) {
      reserve(owner(argument));
    } else if (op < 54) {
      finish(argument);
    } else if (op < 62) {
      requeue(argument);
    } else if (op < 66) {
      touch(argument);
    } else if (op < 70) {
      cancel(argument);
    } else if (op < 72) {
      release(owner(argument));
    } else if (op < 82) {
      advance(argument);
    } else if (op < 84) {
      now_.wall.ns += (static_cast<std::int64_t>(argument % 21) - 10) * 20 * kSecond;
    } else if (op < 86) {
      pause(argument % 2 == 0);
    } else if (op < 88) {
      empty(argument);
    } else if (op < 90) {
      finish_position(argument);
    } else if (op < 92) {
      lose(argument);
    } else if (op < 94) {
      collect(argument);
    } else if (op < 96) {
      take_checkpoint();
    } else if (op < 98) {
      restart_clean();
    } else {
      restart_from_wal(argument);
    }
    compare();
  }

 private:
  storage::ChannelImage start_image() {
    storage::ChannelImage image;
    image.name = "workers";
    for (int i = 0; i < 3; ++i) view_.publish(now_);
    image.barrier = 3;
    return image;
  }
  std::unique_ptr<Channel> make(const storage::ChannelImage& image) {
    return std::make_unique<Channel>(image, setup_.ephemeral, setup_.settings, tokens_);
  }
  static ConsumerId owner(std::uint32_t argument) { return ConsumerId{argument % 3 + 1}; }
  bool level2() const { return setup_.settings.feature_level >= 2; }
  void record(const std::optional<storage::WalCommand>& command) {
    RC_ASSERT(!(setup_.ephemeral && command));
    if (command) wal_.push_back(*command);
  }
  std::optional<Position> pick(std::uint32_t argument, bool in_flight) const {
    std::vector<Position> choices;
    for (const auto& [p, item] : model_.items)
      if (item.flight.has_value() == in_flight) choices.push_back(p);
    if (choices.empty()) return std::nullopt;
    return choices[argument % choices.size()];
  }

  void publish(std::uint32_t argument) {
    const std::int64_t delay_ms = argument % 4 == 0 ? (argument / 4 % 20) * 5'000 : 0;
    for (std::uint32_t i = 0; i <= argument % 3; ++i) view_.publish(now_, delay_ms);
  }
  void reserve(ConsumerId owner) {
    const std::optional<Position> expected = model_.select(view_, now_);
    Reservation got;
    if (expected) {
      view_.set_loading(*expected, true);
      RC_ASSERT(channel_->reserve(view_, now_, owner, kLease, got) == Reserve::loading);
      view_.set_loading(*expected, false);
    }
    const Token before = tokens_;
    const Reserve result = channel_->reserve(view_, now_, owner, kLease, got);
    RC_ASSERT((result == Reserve::reserved) == expected.has_value());
    if (!expected) {
      const Instant change = model_.next_change(view_, now_);
      RC_ASSERT(channel_->next_deadline(now_) <= change);
      RC_ASSERT(channel_->next_deadline(now_) > now_.mono || change <= now_.mono);
      return;
    }
    RC_ASSERT(got.message.position == *expected);
    RC_ASSERT(got.message == view_.at(*expected));
    RC_ASSERT(got.token == before + 1 && tokens_ == before + 1);
    ChannelModel::Item& item = model_.items[*expected];
    item.redeliver = false;
    item.target_ms.reset();
    item.wait.reset();
    item.flight = ChannelModel::Flight{owner, got.token, now_.mono, now_.mono + kLease, item.attempts == 0xffff};
    if (item.attempts != 0xffff) ++item.attempts;
    RC_ASSERT(got.attempts == item.attempts);
  }
  Held expected_held(std::optional<Position> p, ConsumerId owner) const {
    if (!p || !model_.items.at(*p).flight) return Held::not_in_flight;
    return model_.items.at(*p).flight->owner == owner ? Held::ok : Held::not_owner;
  }
  ConsumerId asker(std::optional<Position> p, std::uint32_t argument) const {
    if (p && model_.items.at(*p).flight && argument % 5 != 0) return model_.items.at(*p).flight->owner;
    return owner(argument);
  }
  void finish(std::uint32_t argument) {
    const auto p = pick(argument, argument % 7 != 0);
    const ConsumerId who = asker(p, argument);
    std::optional<storage::WalCommand> command;
    const Held held = channel_->finish(who, VectorView::id(p.value_or(0)), command);
    RC_ASSERT(held == expected_held(p, who));
    if (held != Held::ok) {
      RC_ASSERT(!command);
      return;
    }
    record(command);
    model_.finish(*p);
  }
  void requeue(std::uint32_t argument) {
    const auto p = pick(argument, argument % 7 != 0);
    const ConsumerId who = asker(p, argument);
    const std::int64_t delay_ms = argument % 3 == 0 ? 0 : (argument / 3 % 30) * 4'000;
    std::optional<storage::WalCommand> command;
    const Held held = channel_->requeue(who, VectorView::id(p.value_or(0)), delay_ms, now_, command);
    RC_ASSERT(held == expected_held(p, who));
    if (held != Held::ok) return;
    record(command);
    ++model_.requeues;
    model_.offer(*p);
    ChannelModel::Item& item = model_.items.at(*p);
    item.target_ms = (now_.wall.ns + (delay_ms > 0 ? kMillisecond - 1 : 0)) / kMillisecond + delay_ms;
    if (delay_ms > 0) item.wait = MessageView::Due{{*item.target_ms * kMillisecond}, now_.mono + delay_ms * kMillisecond};
  }
  void touch(std::uint32_t argument) {
    const auto p = pick(argument, true);
    const ConsumerId who = asker(p, argument);
    const Held held = channel_->touch(who, VectorView::id(p.value_or(0)), now_, kLease, kLeaseMax);
    RC_ASSERT(held == expected_held(p, who));
    if (held != Held::ok) return;
    ChannelModel::Flight& flight = *model_.items.at(*p).flight;
    flight.deadline = std::min(now_.mono + kLease, flight.delivered + kLeaseMax);
  }
  void cancel(std::uint32_t argument) {
    const auto p = pick(argument, true);
    if (!p) return;
    const Token token = model_.items.at(*p).flight->token;
    RC_ASSERT(!channel_->cancel(VectorView::id(*p), token + 1));
    RC_ASSERT(channel_->cancel(VectorView::id(*p), token));
    ChannelModel::Item& item = model_.items.at(*p);
    if (!item.flight->capped) --item.attempts;
    model_.offer(*p);
    cancelled_.insert(*p);
  }
  void release(ConsumerId owner) {
    std::size_t expected = 0;
    for (auto& [p, item] : model_.items) {
      if (!item.flight || item.flight->owner != owner) continue;
      model_.offer(p);
      ++expected;
    }
    RC_ASSERT(channel_->held_by(owner) == expected);
    RC_ASSERT(channel_->release_all(owner) == expected);
  }
  void advance(std::uint32_t argument) {
    const std::int64_t step = (argument % 40) * kSecond + (argument % 3 == 0 ? 1 : 0);
    now_.mono.ns += step;
    now_.wall.ns += step;
    std::set<MessageId> expected;
    for (auto& [p, item] : model_.items) {
      if (!item.flight || item.flight->deadline > now_.mono) continue;
      model_.offer(p);
      ++model_.timeouts;
      expected.insert(VectorView::id(p));
    }
    std::vector<Channel::Released> released;
    std::optional<storage::WalCommand> command;
    channel_->expire(now_, released, command);
    std::set<MessageId> got;
    for (const auto& item : released) got.insert(item.id);
    RC_ASSERT(got == expected && got.size() == released.size());
    RC_ASSERT(command.has_value() == (level2() && !setup_.ephemeral && !expected.empty()));
    record(command);
  }
  void pause(bool paused) {
    const auto command = channel_->set_paused(paused);
    RC_ASSERT(command.has_value() == (!setup_.ephemeral && paused != model_.paused));
    record(command);
    model_.paused = paused;
  }
  void empty(std::uint32_t argument) {
    const Position through = view_.deliverable() - std::min<Position>(view_.deliverable(), argument % 12);
    std::size_t held = 0;
    for (const auto& [p, item] : model_.items)
      if (p <= through && item.flight) ++held;
    std::vector<Channel::Released> released;
    record(argument % 2 == 0 ? channel_->empty_through(through, released) : channel_->evict_through(through, released));
    RC_ASSERT(released.size() == held);
    model_.finish_through(through);
  }
  void finish_position(std::uint32_t argument) {
    const Position p = model_.floor(view_) + 1 + argument % 6;
    if (!view_.present(p)) return;
    std::optional<storage::WalCommand> command;
    RC_ASSERT(channel_->finish_position(p, VectorView::id(p), command) == !model_.is_finished(p));
    record(command);
    model_.finish(p);
  }
  void lose(std::uint32_t argument) {
    if (setup_.gaps) view_.lose(argument % 3 + 1);
  }
  // What every durable Channel has finished may be collected, and under an ephemeral one all that it does not hold.
  void collect(std::uint32_t argument) {
    Position last = channel_->ack_floor();
    if (setup_.ephemeral)
      last = std::min(last + argument % 8, channel_->lowest_in_flight().value_or(view_.deliverable() + 1) - 1);
    view_.remove(1, last);
    channel_->drop_absent(view_);
    if (setup_.ephemeral) model_.finish_through(std::min(last, view_.deliverable()));
  }

  void take_checkpoint() {
    checkpoint_ = channel_->image();
    wal_.clear();
    cancelled_.clear();
  }
  void restart_clean() {
    for (std::uint32_t i = 0; i < 3; ++i) release(owner(i));
    take_checkpoint();
    reopen(checkpoint_);
  }
  void restart_from_wal(std::uint32_t argument) {
    if (setup_.ephemeral) return;
    storage::ChannelImage image = checkpoint_;
    for (const auto& command : wal_) apply(image, command);
    // I-21: a prefix replayed twice changes nothing (but the requeue count at level 1).
    storage::ChannelImage twice = checkpoint_;
    const std::size_t prefix = wal_.empty() ? 0 : argument % (wal_.size() + 1);
    for (std::size_t i = 0; i < prefix; ++i) apply(twice, wal_[i]);
    for (const auto& command : wal_) apply(twice, command);
    RC_ASSERT(twice.ack_floor == image.ack_floor && twice.acknowledged == image.acknowledged);
    RC_ASSERT(twice.requeued_until_ms == image.requeued_until_ms && twice.attempts == image.attempts);
    RC_ASSERT(twice.paused == image.paused && twice.timeout_count == image.timeout_count);
    RC_ASSERT((level2() ? twice.requeue_count == image.requeue_count : twice.requeue_count >= image.requeue_count));
    // A WAL over the checkpoint that contains it finishes nothing else and forgets nothing finished.
    storage::ChannelImage over = channel_->image();
    for (const auto& command : wal_) apply(over, command);
    RC_ASSERT(over.ack_floor == channel_->ack_floor() && over.acknowledged == channel_->image().acknowledged);
    RC_ASSERT(!level2() || (over.requeue_count == model_.requeues && over.timeout_count == model_.timeouts));

    RC_ASSERT(image.requeue_count == model_.requeues);
    RC_ASSERT((level2() ? image.timeout_count == model_.timeouts : image.timeout_count <= model_.timeouts));
    RC_ASSERT(image.paused == model_.paused);
    for (const auto& [p, item] : model_.items) {
      if (item.target_ms) {  // a REQ that was answered and not delivered since
        RC_ASSERT(image.requeued_until_ms.at(p) == *item.target_ms);
        RC_ASSERT(cancelled_.count(p) != 0 || image.attempts.at(p) == item.attempts);
      }
      const auto attempts = image.attempts.find(p);
      if (attempts != image.attempts.end() && cancelled_.count(p) == 0) RC_ASSERT(attempts->second <= item.attempts);
    }
    checkpoint_ = image;
    wal_.clear();
    cancelled_.clear();
    reopen(image);
  }
  void reopen(const storage::ChannelImage& image) {
    channel_ = make(image);
    view_.restart();
    channel_->drop_absent(view_);
    // Finished stays finished, unfinished stays unfinished (I-58); the rest is what the image says.
    std::map<Position, ChannelModel::Item> items;
    for (const auto& [p, attempts] : image.attempts) {
      items[p].attempts = attempts;
      items[p].redeliver = true;
    }
    for (const auto& [p, target] : image.requeued_until_ms) {
      items[p].redeliver = true;
      items[p].target_ms = target;
      items[p].wait = MessageView::Due{{target * kMillisecond}, Instant::never()};
    }
    for (const auto& [p, item] : items) RC_ASSERT(!model_.is_finished(p));
    for (const auto& [p, meta] : view_.messages())
      RC_ASSERT(channel_->is_fresh(p) == (!model_.is_finished(p) && items.count(p) == 0));
    model_.items = items;
    model_.timeouts = image.timeout_count;
    model_.paused = image.paused;
  }

  void compare() {
    channel_->check_invariants(view_);
    RC_ASSERT(channel_->ack_floor() <= model_.floor(view_));
    if (!setup_.gaps) RC_ASSERT(channel_->ack_floor() == model_.floor(view_));
    RC_ASSERT(channel_->depth(view_) == model_.depth(view_));
    RC_ASSERT(channel_->message_count(view_) == view_.deliverable() - model_.start);
    RC_ASSERT(channel_->requeue_count() == model_.requeues);
    RC_ASSERT(channel_->timeout_count() == model_.timeouts);
    RC_ASSERT(channel_->paused() == model_.paused);
    std::uint64_t in_flight = 0, future = 0;
    std::optional<Position> lowest;
    for (const auto& [p, item] : model_.items) {
      if (item.flight && !lowest) lowest = p;
      in_flight += item.flight ? 1 : 0;
      future += item.wait && !item.wait->reached(now_) ? 1 : 0;
    }
    RC_ASSERT(channel_->in_flight_count() == in_flight);
    RC_ASSERT(channel_->lowest_in_flight() == lowest);
    RC_ASSERT(channel_->requeued_future_count(now_) >= future);
    for (const auto& [p, meta] : view_.messages()) RC_ASSERT(channel_->is_fresh(p) == model_.is_fresh(p));

    const storage::ChannelImage image = channel_->image();
    std::map<Position, std::int64_t> targets;
    std::map<Position, std::uint16_t> attempts;
    for (const auto& [p, item] : model_.items) {
      if (item.target_ms) targets[p] = *item.target_ms;
      if (item.attempts != 0) attempts[p] = item.attempts;
    }
    RC_ASSERT(image.requeued_until_ms == targets);
    RC_ASSERT(image.attempts == attempts);
    for (Position p : image.acknowledged) RC_ASSERT(model_.is_finished(p));
    RC_ASSERT(image.acknowledged.size() == channel_->ack_gap());
  }

  Setup setup_;
  VectorView view_;
  Now now_{Instant{1'000 * kSecond}, WallTime{1'700'000'000 * kSecond}};
  Token tokens_ = 0;
  std::vector<storage::WalCommand> wal_;
  std::set<Position> cancelled_;  // since the checkpoint: the image may count one attempt more
  std::unique_ptr<Channel> channel_;
  storage::ChannelImage checkpoint_;
  ChannelModel model_;
};

void agrees(bool ephemeral, std::uint32_t feature_level) {
  const auto property = [=] {
    Setup setup;
    setup.ephemeral = ephemeral;
    setup.gaps = *rc::gen::arbitrary<bool>();
    setup.settings.feature_level = feature_level;
    setup.settings.max_ack_gap = *rc::gen::element<std::uint64_t>(1, 2, 5, 16, 1'000);
    setup.settings.deferred_near = *rc::gen::element<std::uint32_t>(0, 1, 3, 512);
    const auto length = *rc::gen::noShrink(rc::gen::resize(100, rc::gen::inRange<std::size_t>(1, 250)));
    const auto words = *rc::gen::container<std::vector<std::uint32_t>>(length, rc::gen::inRange<std::uint32_t>(0, 100 * 840));
    Run run(setup);
    for (std::uint32_t word : words) run.step(word);
  };
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess *= 10;
  const rc::detail::TestResult result = rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  std::ostringstream what;
  rc::detail::printResultMessage(result, what);
  ASSERT_TRUE(result.is<rc::detail::SuccessResult>()) << what.str();
}

TEST(ChannelModel, ADurableChannelAgreesWithTheModelAtFeatureLevelOne) { agrees(false, 1); }
TEST(ChannelModel, ADurableChannelAgreesWithTheModelAtFeatureLevelTwo) { agrees(false, 2); }
TEST(ChannelModel, AnEphemeralChannelAgreesWithTheModel) { agrees(true, 1); }

}  // namespace
}  // namespace rq::queue::test
