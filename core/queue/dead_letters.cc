#include "core/queue/dead_letters.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/probe.h"
#include "core/queue/topic.h"

namespace rq::queue {
namespace {

constexpr storage::Position kNowhere = std::numeric_limits<storage::Position>::max();

std::string_view reason_of(Code code) {
  switch (code) {
    case Code::topic_limit:
      return "the dead-letter Topic is over the limit of Topics";
    case Code::message_too_large:
      return "the message is too large for a dead letter";
    default:
      return "the dead-letter Topic does not accept the message";
  }
}

}  // namespace

DeadLetters::DeadLetters(Shared& shared, TopicBook& topics, DeadLetterSettings settings)
    : shared_(shared), topics_(topics), settings_(std::move(settings)) {
  read_.done = &DeadLetters::on_read;
  read_.self = this;
  load_op_.done = &DeadLetters::on_load;
  load_op_.self = this;
}

DeadLetters::~DeadLetters() = default;

// --- triggers

DeadLetterCause DeadLetters::cause(const Topic& topic, const Reservation& reservation, Now now) const {
  if (topic.policy().ttl_discard) return DeadLetterCause::none;
  return dead_letter_cause(settings_, topic.name(), reservation.attempts, reservation.message.timestamp_ns, now.wall);
}

void DeadLetters::want(ChannelLane& lane, ConsumerId consumer, const Reservation& reservation, DeadLetterCause cause) {
  wanted_.push_back({lane.serial(), consumer, reservation.message, reservation.token, cause});
}

void DeadLetters::forget(ConsumerId consumer) {
  std::erase_if(wanted_, [consumer](const Wanted& wanted) { return wanted.consumer == consumer; });
}

// --- policy changes

bool DeadLetters::begin_policy_change(Topic& topic) {
  if (idle()) {
    ++policy_changes_;
    return true;
  }
  if (std::find(waiting_changes_.begin(), waiting_changes_.end(), &topic) == waiting_changes_.end())
    waiting_changes_.push_back(&topic);
  return false;
}

void DeadLetters::drop_intents_of(const Topic& topic, storage::Script& script) {
  std::vector<std::string> files;
  for (auto at = pins_.lower_bound({topic.owner(), 0, {}}); at != pins_.end() && std::get<0>(*at) == topic.owner(); ++at)
    files.push_back(std::get<2>(*at));
  for (const std::string& file : files) {
    script.unlink(path_of(file));
    drop(file);
  }
  if (!files.empty()) script.sync_dir(shared_.paths.outbox());
}

// --- intents that are kept

void DeadLetters::keep(const std::string& file, std::uint64_t topic, storage::Position position) {
  drop(file);
  intents_[file] = {topic, position};
  pins_.insert({topic, position, file});
}

void DeadLetters::drop(const std::string& file) {
  const auto found = intents_.find(file);
  if (found == intents_.end()) return;
  pins_.erase({found->second.topic, found->second.position, file});
  intents_.erase(found);
}

storage::Position DeadLetters::lowest_intent(std::uint64_t topic_owner) const {
  const auto at = pins_.lower_bound({topic_owner, 0, {}});
  return at != pins_.end() && std::get<0>(*at) == topic_owner ? std::get<1>(*at) : kNowhere;
}

void DeadLetters::topic_gone(Topic& topic) {
  std::erase(waiting_changes_, &topic);
  while (true) {
    const auto at = pins_.lower_bound({topic.owner(), 0, {}});
    if (at == pins_.end() || std::get<0>(*at) != topic.owner()) return;
    const std::string file = std::get<2>(*at);
    drop(file);
  }
}

std::string DeadLetters::path_of(const std::string& file) const { return shared_.paths.outbox() + "/" + file; }

// --- the move

void DeadLetters::advance(Now now) {
  finished_.reset();
  while (!shared_.fault && step(now)) {
  }
}

bool DeadLetters::step(Now now) {
  switch (step_) {
    case Step::idle:
      return files_.empty() ? begin_next() : load_next();
    case Step::loading:
      return std::exchange(arrived_, false) && take_file(now);
    case Step::locating:
      return locate(now);
    case Step::reading:
      return std::exchange(arrived_, false) && take_body();
    case Step::storing:
      return std::exchange(arrived_, false) && publish(now);
    case Step::publishing:
      return std::exchange(arrived_, false) && finish(now);
    case Step::finishing:
      return (std::exchange(arrived_, false) || !shared_.lanes.contains(move_.lane)) && clear();
    case Step::clearing:
      if (!std::exchange(arrived_, false)) return false;
      end_move();
      return true;
  }
  return false;
}

bool DeadLetters::begin_next() {
  if (!waiting_changes_.empty()) {
    for (Topic* topic : std::exchange(waiting_changes_, {})) topic->mark();
    return false;
  }
  if (policy_changes_ > 0 || wanted_.empty()) return false;
  const Wanted wanted = wanted_.front();
  wanted_.pop_front();
  return start(wanted);
}

// Step 0: only what is still in flight under its token moves; a message that was finished, emptied or timed out meanwhile has
// settled its slot on its own.
bool DeadLetters::start(const Wanted& wanted) {
  const auto lane = shared_.lanes.find(wanted.lane);
  if (lane == shared_.lanes.end() || lane->second->removing) return true;
  ChannelLane& from = *lane->second;
  if (!from.channel().take_over(wanted.message.id, wanted.token)) return true;
  move_ = Move{};
  static_cast<Wanted&>(move_) = wanted;
  Topic& topic = from.topic();
  move_.topic = topic.owner();
  move_.entry.source_topic = topic.name();
  move_.entry.source_channel = from.channel().name();
  move_.entry.target_topic = dead_letter_target(topic.name(), from.channel().name(), settings_.suffix);
  move_.entry.source_id = wanted.message.id;
  move_.file = storage::outbox_file_name(move_.entry);
  if (topic.policy().ttl_discard) {
    give_up();
    return true;
  }
  Code why = Code::message_too_large;
  const bool full = intents_.size() >= kIntentsMax && topics_.target_topic(move_.entry.target_topic, why) == nullptr;
  if (full || wanted.message.body_bytes > dead_letter_body_max(shared_.options.feature_level)) {
    refuse(why);
    return true;
  }
  move_.body = topic.log()->cached_body(wanted.message.position);
  if (!move_.body.empty() || wanted.message.body_bytes == 0 || topic.disk() == nullptr) return store();
  Chunk* chunk = new_chunk(wanted.message.body_bytes);
  move_.body = Slice(chunk, chunk->data(), wanted.message.body_bytes);
  read_.path = topic.disk()->segment_path(wanted.message.position);
  read_.at = wanted.message.body_offset;
  read_.into = {chunk->data(), wanted.message.body_bytes};
  step_ = Step::reading;
  ++shared_.metrics.payload_reads;
  shared_.reads.start(read_);
  return true;
}

void DeadLetters::on_read(storage::ReadPool::Read& read) { static_cast<DeadLetters*>(read.self)->arrived_ = true; }

bool DeadLetters::take_body() {
  const ChannelLane* from = source();
  if (from == nullptr || from->channel().is_finished(move_.message.position)) {  // its file may be gone already
    give_up();
    return true;
  }
  const MessageMeta& message = move_.message;
  const std::string file = shared_.paths.relative(read_.path);
  if (read_.error) {
    shared_.set_fault({file, read_.at, storage::describe(read_.error)});
  } else if (read_.got != move_.body.size()) {
    shared_.set_fault({file, read_.at + read_.got, "a message body ends early"});
  } else if (crc32c(move_.body.bytes()) != message.body_crc) {
    shared_.set_fault({file, message.body_offset,
                       "checksum of the message body at position " + std::to_string(message.position) + " does not match"});
  } else {
    return store();
  }
  return false;
}

bool DeadLetters::store() {
  step_ = Step::storing;
  keep(move_.file, move_.topic, move_.message.position);
  begin_script();
  script_->replace_file(path_of(move_.file), storage::encode_outbox(move_.entry, text_of(move_.body.bytes())));
  script_->start();
  return true;
}

bool DeadLetters::publish(Now now) {
  Code why = Code::ok;
  Topic* target = topics_.target_topic(move_.entry.target_topic, why);
  if (target == nullptr) {
    refuse(why);
    return true;
  }
  step_ = Step::publishing;
  if (io::planted(shared_.host, "letter_without_copy")) {
    on_published({});
    return true;
  }
  std::vector<Slice> bodies{std::move(move_.body)};
  const std::uint64_t encoded = storage::TopicLog::encoded_bytes(bodies);
  Topic::Publish request;
  request.bodies = std::move(bodies);
  request.bytes = encoded;
  request.since = now.mono;
  request.dead_letter = true;
  target->publish(std::move(request));
  return true;
}

void DeadLetters::on_published(const Outcome& outcome) {
  RQ_CHECK(step_ == Step::publishing);
  published_ = outcome;
  arrived_ = true;
}

bool DeadLetters::finish(Now now) {
  if (!published_.ok()) {
    refuse(published_.code);
    return true;
  }
  move_.copied = true;
  step_ = Step::finishing;
  ChannelLane* from = source();
  std::optional<storage::WalCommand> command;
  if (from == nullptr || move_.message.position == 0) {
    arrived_ = true;
    return true;
  }
  from->channel().finish_position(move_.message.position, move_.message.id, command);  // or it was emptied meanwhile
  from->commit(command, {.dead_letter = true}, now);
  from->topic().mark_dispatch(*from);
  return true;
}

void DeadLetters::on_finished() {
  RQ_CHECK(step_ == Step::finishing);  // a Channel waits for its commands before it goes
  arrived_ = true;
}

bool DeadLetters::clear() {
  arrived_ = false;
  step_ = Step::clearing;
  begin_script();
  script_->unlink(path_of(move_.file));
  script_->sync_dir(shared_.paths.outbox());
  script_->start();
  return true;
}

void DeadLetters::end_move() {
  drop(move_.file);
  if (move_.copied) ++shared_.metrics.dead_letter_messages;
  if (move_.cause == DeadLetterCause::age) ++shared_.metrics.retention_expired_messages;
  if (Consumer* consumer = shared_.consumers.find(move_.consumer)) {
    shared_.give_back_slot(*consumer);
    shared_.events.timed_out.push_back({move_.consumer, move_.message.id});
    consumer->topic->mark_dispatch(*consumer->lane);
  }
  step_ = Step::idle;
}

// The message stays where it is; its intent stays too, once it is stored, for the next delivery or the next start (D-48).
void DeadLetters::refuse(Code code) {
  RQ_SOMETIMES(true, "dead letters: the target is refused");
  shared_.host.log.log(io::Level::warn, "dead_letter_refused",
                       "topic=" + move_.entry.source_topic + " channel=" + move_.entry.source_channel +
                           " target=" + move_.entry.target_topic + " reason=\"" + std::string(reason_of(code)) + "\"");
  const ConsumerId id = move_.consumer;
  give_up();
  if (Consumer* consumer = shared_.consumers.find(id)) {
    consumer->topic->detach(*consumer);
    shared_.consumers.remove(id);
    shared_.events.closed.push_back({id, "E_DELIVERY_FAILED " + std::string(reason_of(code))});
  }
}

void DeadLetters::give_up() {
  step_ = Step::idle;
  move_.body = {};
  ChannelLane* from = source();
  if (from != nullptr && from->channel().release(move_.message.id, move_.token)) {
    from->note_changed();
    from->topic().mark_dispatch(*from);
  }
  Consumer* consumer = shared_.consumers.find(move_.consumer);
  if (consumer == nullptr) return;
  shared_.give_back_slot(*consumer);
  shared_.events.timed_out.push_back({move_.consumer, move_.message.id});
}

ChannelLane* DeadLetters::source() const {
  const auto lane = shared_.lanes.find(move_.lane);
  return lane == shared_.lanes.end() || lane->second->removing ? nullptr : lane->second;
}

void DeadLetters::begin_script() {
  script_ = std::make_unique<storage::Script>(shared_.host, this, &DeadLetters::on_script, &shared_.retries);
}

void DeadLetters::on_script(void* self, storage::Script& script) {
  DeadLetters& letters = *static_cast<DeadLetters*>(self);
  letters.finished_ = std::move(letters.script_);
  if (script.failed()) return letters.shared_.set_fault(script.fault());
  letters.arrived_ = true;
}

}  // namespace rq::queue
