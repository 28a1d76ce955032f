// The Engine's calls. The turn is in engine_turn.cc, statistics in engine_stats.cc, the stop in engine_stop.cc.
#include "core/queue/engine.h"

#include <algorithm>

#include "core/queue/engine_impl.h"
#include "core/storage/names.h"

namespace rq::queue {

void Events::clear() {
  published.clear();
  subscribed.clear();
  deliveries.clear();
  commands.clear();
  timed_out.clear();
  closed.clear();
  policy_changes.clear();
  admin.clear();
  stats.clear();
  managed.clear();
  scrubbed.clear();
}

Engine::Engine(io::Host& host, EngineOptions options) : impl_(std::make_unique<Impl>(host, std::move(options))) {}
Engine::~Engine() { impl_->shared.holds.close(); }

void Engine::open() {
  RQ_CHECK(impl_->state == EngineState::closed);
  storage::OpenOptions options;
  options.data_path = impl_->options.data_path;
  options.node_id = impl_->options.node_id;
  options.feature_level = impl_->options.feature_level;
  options.max_topics = impl_->options.max_topics;
  options.pid = impl_->options.pid;
  impl_->opener = std::make_unique<storage::Opener>(impl_->host, std::move(options));
  impl_->state = EngineState::opening;
  impl_->opener->start();
}

EngineState Engine::state() const { return impl_->state; }
const storage::Fault* Engine::fault() const { return impl_->shared.fault ? &*impl_->shared.fault : nullptr; }
std::uint64_t Engine::recovered_topics() const { return impl_->opener ? impl_->opener->topics_done() : 0; }
std::uint64_t Engine::recoverable_topics() const { return impl_->opener ? impl_->opener->topics_total() : 0; }
Events& Engine::events() { return impl_->shared.events; }
const EngineMetrics& Engine::metrics() const {
  Shared& shared = impl_->shared;
  shared.metrics.barriers = shared.committer.barriers();
  shared.metrics.appends = shared.committer.appends();
  shared.metrics.appended_bytes = shared.committer.appended_bytes();
  shared.metrics.barrier_us = shared.committer.segment_barrier_us();
  shared.metrics.channel_barrier_us = shared.committer.wal_barrier_us();
  shared.metrics.publish_workers = impl_->committers.size();
  shared.metrics.metadata_reads = shared.logs.metadata_reads;
  shared.metrics.in_flight_messages = shared.slots_in_use;
  shared.metrics.delivery_bytes = shared.holds.in_use();
  shared.metrics.delivery_waiters = shared.holds.waiting();
  shared.metrics.delivery_waits = shared.holds.waited();
  return shared.metrics;
}
const storage::BrokerImage& Engine::identity() const { return impl_->identity; }
std::uint64_t Engine::registry_revision() const { return impl_->shared.meta ? impl_->shared.meta->revision() : 0; }

bool Engine::has_topic(std::string_view topic) const { return impl_->live(topic) != nullptr; }
void Engine::keep_for_known_channels(bool on) {
  if (impl_->shared.keep_for_channels == on) return;
  impl_->shared.keep_for_channels = on;
  if (on) return;
  for (const auto& [name, topic] : impl_->topics) topic->open();
}
bool Engine::opening(std::string_view topic) const {
  const Topic* found = impl_->live(topic);
  return found != nullptr && found->opening();
}
void Engine::open(std::string_view topic) {
  if (Topic* found = impl_->live(topic)) found->open();
}
bool Engine::has_channel(std::string_view topic, std::string_view channel) const {
  Topic* found = impl_->live(topic);
  if (found == nullptr) return false;
  ChannelLane* lane = found->lane(channel);
  return lane != nullptr && !lane->removing;
}

Outcome Engine::publish(std::string_view topic, std::vector<Slice> bodies, std::int64_t defer_ms, WaiterId waiter, Now now) {
  Impl& impl = *impl_;
  if (impl.shared.fault) return {Code::storage, impl.shared.fault->message()};
  if (impl.state != EngineState::open) return {Code::exiting, "exiting"};
  if (!storage::valid_name(topic)) return {Code::bad_topic_name, {}};
  if (const Code code = impl.shared.access.check(topic, now.wall); code != Code::ok) return {code, {}};
  if (bodies.empty() || bodies.size() > storage::kBatchMessagesMax) return {Code::batch_too_large, "1 to 65536 messages"};
  for (const Slice& body : bodies) {
    if (body.empty()) return {Code::empty_message, {}};
    if (body.size() > impl.options.max_message_bytes) return {Code::message_too_large, {}};
  }
  const std::uint64_t encoded = storage::TopicLog::encoded_bytes(bodies);
  const std::uint64_t payload_max = impl.options.feature_level >= 2 ? storage::kPayloadBytesMax : storage::kPayloadBytesMaxLevel1;
  if (encoded - storage::kRecordHeaderBytes > payload_max) return {Code::batch_too_large, "record payload over the limit"};
  if (defer_ms < 0 || defer_ms > impl.options.max_defer_ms) return {Code::batch_too_large, "delay out of range"};
  Topic* found = impl.find(topic);
  if (found == nullptr && impl.topics.size() >= impl.options.max_topics)
    return {Code::topic_limit, "the Broker has queue.max_topics Topics"};
  if (found != nullptr && found->phase() != Topic::Phase::live && found->phase() != Topic::Phase::creating)
    return {Code::topic_retiring, "the Topic is being deleted"};
  if (!impl.take_committer(found, now)) return {Code::worker_limit, "all publish workers are busy"};
  if (found == nullptr) {
    found = &impl.create(std::string(topic));
    const bool slot = impl.take_committer(found, now);
    RQ_CHECK(slot);
  }
  found->publish({waiter, std::move(bodies), defer_ms, encoded, now.mono});
  return {};
}

// With no Topic: is there room for one more? Otherwise takes or renews the Topic's slot.
bool Engine::Impl::take_committer(Topic* topic, Now now) {
  if (topic != nullptr) {
    const auto held = committer_use.find(topic->owner());
    if (held != committer_use.end()) {
      if (held->second == now.mono.ns) return true;
      committers.erase({held->second, topic->owner()});
      committers.insert({now.mono.ns, topic->owner()});
      held->second = now.mono.ns;
      return true;
    }
  }
  if (committers.size() >= options.max_publish_workers && !retire_committer(now)) {
    ++shared.metrics.publish_workers_rejected;
    return false;
  }
  if (topic != nullptr) {
    committers.insert({now.mono.ns, topic->owner()});
    committer_use[topic->owner()] = now.mono.ns;
  }
  return true;
}

// The one that was used longest ago, when it is idle; false otherwise.
bool Engine::Impl::retire_committer(Now now) {
  if (committers.empty()) return false;
  const auto oldest = *committers.begin();
  const std::int64_t idle_ns =
      static_cast<std::int64_t>(std::min<std::uint64_t>(options.publish_worker_idle_seconds, 1u << 30)) * kSecond;
  const auto found = by_owner.find(oldest.second);
  const bool busy = found != by_owner.end() && !found->second->quiet();
  if (busy || now.mono.ns - oldest.first < idle_ns) return false;
  committers.erase(committers.begin());
  committer_use.erase(oldest.second);
  ++shared.metrics.publish_workers_retired;
  return true;
}

Topic& Engine::Impl::create(std::string name) {
  auto topic = std::make_unique<Topic>(shared, name);
  Topic& created = *topic;
  by_owner[created.owner()] = &created;
  topics.emplace(std::move(name), std::move(topic));
  return created;
}

// Where a Topic is closed to the Broker's own publishes, this is the place that says so.
Topic* Engine::Impl::target_topic(std::string_view name, Code& why) {
  if (const Code code = shared.access.check(name, host.clock.wall()); code != Code::ok) {
    why = code;
    return nullptr;
  }
  if (Topic* found = find(name)) {
    if (found->phase() == Topic::Phase::live || found->phase() == Topic::Phase::creating) return found;
    why = Code::topic_retiring;
    return nullptr;
  }
  if (topics.size() >= options.max_topics) {
    why = Code::topic_limit;
    return nullptr;
  }
  return &create(std::string(name));
}

void Engine::Impl::refuse(const Topic::Operation& operation, Code code, std::string detail) {
  if (operation.subscribe) {
    shared.events.subscribed.push_back({operation.waiter, {code, std::move(detail)}, ConsumerId::none});
  } else if (operation.waiter != WaiterId::none) {
    shared.events.admin.push_back({operation.waiter, {code, std::move(detail)}});
  }
}

void Engine::Impl::operate(std::string_view topic, Topic::Operation operation, bool create_missing, Now now) {
  if (shared.fault) return refuse(operation, Code::storage, shared.fault->message());
  if (state != EngineState::open) return refuse(operation, Code::exiting, "exiting");
  if (operation.waiter != kManagedWaiter) {
    const Code code = shared.access.check(topic, operation.channel, now.wall);
    if (code != Code::ok) return refuse(operation, code);
  }
  // To a managed deletion "not there" is a success: it hears so when that is durable.
  const bool removal = operation.action == Admin::delete_topic || operation.action == Admin::delete_channel;
  Topic* found = find(topic);
  if (found == nullptr) {
    if (!create_missing) return refuse(operation, Code::topic_not_found);
    if (topics.size() >= options.max_topics)
      return refuse(operation, Code::topic_limit, "the Broker has queue.max_topics Topics");
    found = &create(std::string(topic));
    operation.created = true;
  } else if (found->phase() == Topic::Phase::deleting && !create_missing && !removal) {
    return refuse(operation, Code::topic_not_found);
  }
  found->operate(std::move(operation));
}

void Engine::subscribe(std::string_view topic, std::string_view channel, const SubscribeOptions& options, WaiterId waiter,
                       Now now) {
  Topic::Operation operation{Admin::create_channel, true, std::string(channel), waiter, options};
  if (!storage::valid_name(topic)) return impl_->refuse(operation, Code::bad_topic_name);
  if (!storage::valid_name(channel)) return impl_->refuse(operation, Code::bad_channel_name);
  impl_->operate(topic, std::move(operation), !options.live_feed, now);
}

void Engine::admin(Admin action, std::string_view topic, std::string_view channel, WaiterId waiter, Now now) {
  Topic::Operation operation{action, false, std::string(channel), waiter, {}};
  if (!storage::valid_name(topic)) return impl_->refuse(operation, Code::bad_topic_name);
  const bool on_channel = action >= Admin::create_channel;
  if (on_channel && !storage::valid_name(channel)) return impl_->refuse(operation, Code::bad_channel_name);
  impl_->operate(topic, std::move(operation), action == Admin::create_topic || action == Admin::create_channel, now);
}

void Engine::configure(std::string_view topic, const DeliveryPolicy& policy, bool create_missing, WaiterId waiter, Now now) {
  Topic::Operation operation{.action = Admin::configure_topic,
                             .subscribe = false,
                             .channel = {},
                             .waiter = waiter,
                             .options = {},
                             .policy = policy,
                             .create_missing = create_missing};
  if (!storage::valid_name(topic)) return impl_->refuse(operation, Code::bad_topic_name);
  if (!policy.valid()) return impl_->refuse(operation, Code::invalid_policy, "TTL_DISCARD needs 1 to 9223372036 seconds");
  impl_->operate(topic, std::move(operation), create_missing, now);
}

std::optional<DeliveryPolicy> Engine::policy_of(std::string_view topic) const {
  const Topic* found = impl_->live(topic);
  if (found == nullptr) return std::nullopt;
  return found->policy();
}

std::uint64_t Engine::reliable_epoch_of(std::string_view topic) const {
  const Topic* found = impl_->live(topic);
  return found == nullptr ? 0 : found->reliable_epoch();
}

void Engine::unsubscribe(ConsumerId id, Now) {
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr) return;  // the Channel went first
  consumer->topic->detach(*consumer);
  impl_->shared.consumers.remove(id);
}

void Engine::set_ready(ConsumerId id, std::uint32_t rdy) {
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || consumer->rdy == rdy) return;
  consumer->rdy = rdy;
  consumer->topic->mark_dispatch(*consumer->lane);
}

void Engine::set_writable(ConsumerId id, bool writable) {
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || consumer->writable == writable) return;
  consumer->writable = writable;
  if (writable) consumer->topic->mark_dispatch(*consumer->lane);
}

namespace {
Code code_of(Held held) {
  switch (held) {
    case Held::ok:
      return Code::ok;
    case Held::not_in_flight:
      return Code::not_in_flight;
    case Held::not_owner:
      return Code::not_owner;
  }
  return Code::not_in_flight;
}
}  // namespace

// At its deadline a message is no longer in flight, also before the discard that takes it away (page 30 section 9.3).
bool Engine::Impl::held_too_long(const Consumer& consumer, MessageId message, Now now) {
  if (!consumer.topic->expiring()) return false;
  const std::optional<std::int64_t> timestamp_ns = consumer.lane->channel().timestamp_in_flight(message);
  return timestamp_ns && consumer.topic->expired(*timestamp_ns, now);
}

Code Engine::finish(ConsumerId id, MessageId message, Now now) {
  if (impl_->shared.fault) return Code::storage;
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || consumer->lane->removing) return Code::not_in_flight;
  if (const Code code = impl_->access_of(*consumer, now); code != Code::ok) return code;
  if (impl_->held_too_long(*consumer, message, now)) return Code::not_in_flight;
  std::optional<storage::WalCommand> command;
  const Held held = consumer->lane->channel().finish(id, message, command);
  if (held == Held::ok)
    consumer->lane->commit(command, {.consumer = id, .id = message, .silent = consumer->options.live_feed}, now);
  return code_of(held);
}

Code Engine::requeue(ConsumerId id, MessageId message, std::int64_t delay_ms, Now now) {
  if (impl_->shared.fault) return Code::storage;
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || consumer->lane->removing) return Code::not_in_flight;
  if (const Code code = impl_->access_of(*consumer, now); code != Code::ok) return code;
  if (impl_->held_too_long(*consumer, message, now)) return Code::not_in_flight;
  std::optional<storage::WalCommand> command;
  const std::int64_t delay = std::clamp<std::int64_t>(delay_ms, 0, impl_->options.max_defer_ms);
  const Held held = consumer->lane->channel().requeue(id, message, delay, now, command);
  if (held != Held::ok) return code_of(held);
  consumer->lane->commit(command, {.consumer = id, .id = message, .requeue = true}, now);
  consumer->topic->mark_dispatch(*consumer->lane);
  return Code::ok;
}

Code Engine::touch(ConsumerId id, MessageId message, Now now) {
  if (impl_->shared.fault) return Code::storage;
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || consumer->lane->removing) return Code::not_in_flight;
  if (const Code code = impl_->access_of(*consumer, now); code != Code::ok) return code;
  if (impl_->held_too_long(*consumer, message, now)) return Code::not_in_flight;
  const Held held = consumer->lane->channel().touch(id, message, now, consumer->lease_ns(),
                                                    impl_->options.max_message_timeout_ms * kMillisecond);
  if (held != Held::ok) return code_of(held);
  if (consumer->topic->expiring()) {
    if (const auto timestamp_ns = consumer->lane->channel().timestamp_in_flight(message))
      consumer->lane->channel().cap_lease(message, consumer->topic->lease_limit(*timestamp_ns, now));
  }
  consumer->topic->mark_dispatch(*consumer->lane);
  return Code::ok;
}

void Engine::written(ConsumerId id, std::uint64_t body_bytes) {
  if (Consumer* consumer = impl_->shared.consumers.find(id)) impl_->shared.give_back_bytes(*consumer, 2 * body_bytes);
}

void Engine::cancel(ConsumerId id, MessageId message, Token token) {
  Consumer* consumer = impl_->shared.consumers.find(id);
  if (consumer == nullptr || !consumer->lane->channel().cancel(message, token)) return;
  impl_->shared.give_back_slot(*consumer);
  consumer->topic->mark_dispatch(*consumer->lane);
}

std::uint32_t Engine::ready_of(ConsumerId id) const {
  const Consumer* consumer = impl_->shared.consumers.find(id);
  return consumer == nullptr ? 0 : consumer->rdy;
}
std::uint64_t Engine::in_flight_of(ConsumerId id) const {
  const Consumer* consumer = impl_->shared.consumers.find(id);
  return consumer == nullptr ? 0 : consumer->outstanding;
}
bool Engine::can_take(ConsumerId id) const {
  const Consumer* consumer = impl_->shared.consumers.find(id);
  return consumer != nullptr && consumer->rdy > consumer->outstanding && !consumer->lane->channel().paused() &&
         !consumer->topic->paused();
}

void Engine::stats(std::string_view topic, std::string_view channel, WaiterId waiter, Now) {
  impl_->stats_jobs.push_back({.waiter = waiter, .topic = std::string(topic), .channel = std::string(channel)});
}

void Engine::scrub(WaiterId waiter) {
  Impl& impl = *impl_;
  if (impl.shared.fault) return impl.shared.events.scrubbed.push_back({waiter, {Code::storage, impl.shared.fault->message()}});
  if (impl.state != EngineState::open) return impl.shared.events.scrubbed.push_back({waiter, {Code::exiting, "exiting"}});
  impl.scrub.request(waiter);
}

void Engine::end_scrub() { impl_->scrub.end({Code::exiting, "exiting"}); }

void Engine::digest(Hasher& hasher) const {
  for (const auto& [name, topic] : impl_->topics) topic->digest(hasher);
  if (impl_->management) impl_->management->digest(hasher);
}

void Engine::check_invariants() const {
  impl_->shared.committer.check_invariants();
  std::uint64_t slots = 0, bytes = 0;
  for (const auto& [name, topic] : impl_->topics) {
    topic->check_invariants();
    bytes += topic->fetch_bytes();
    for (const auto& [channel, lane] : topic->lanes())
      for (ConsumerId id : lane->consumers) {
        slots += impl_->shared.consumers.find(id)->outstanding;
        bytes += impl_->shared.consumers.find(id)->held_bytes;
      }
  }
  RQ_CHECK(slots == impl_->shared.slots_in_use && bytes == impl_->shared.holds.in_use());  // I-44
  // Nobody waits for what is there, but for the next turn.
  const Shared& shared = impl_->shared;
  const bool done = shared.dirty.empty() && !shared.fault;
  RQ_CHECK(!done || !shared.slot_left() || shared.slot_turns.empty());
  RQ_CHECK(!done || !shared.read_left() || shared.read_turns.empty());
}

}  // namespace rq::queue
