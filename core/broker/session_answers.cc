// Owed answers: they leave in the order of their commands, whatever the order in which they become known (D-17).
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/session.h"

namespace rq::broker {

queue::WaiterId Session::next_waiter() const {
  const std::uint32_t sequence = first_sequence_ + static_cast<std::uint32_t>(answers_owed());
  return make_waiter(WaiterKind::session, std::uint64_t{slot_} << 32 | sequence);
}

Session::Answer& Session::add_answer(Kind kind, Now now) {
  Answer& answer = answers_.emplace_back();
  answer.kind = kind;
  answer.since = now.mono;
  return answer;
}

void Session::answer_ready(std::string error, bool fatal, Now now) {
  Answer& answer = add_answer(Kind::none, now);
  answer.ready = true;
  answer.fatal = fatal;
  answer.error = std::move(error);
  pop_answers(now);
}

void Session::fail(std::string text, Now now) {
  if (!taking_) return;
  ++env_.counters.protocol_errors;
  // The code alone: what follows it may repeat bytes of the peer's.
  env_.host.log.log(io::Level::debug, "client_error", "peer=" + remote_ + " code=" + text.substr(0, text.find(' ')));
  taking_ = false;
  mark_dirty();
  answer_ready(std::move(text), true, now);
  parser_.clear();
  release_body();
}

void Session::pop_answers(Now now) {
  while (answers_owed() > 0 && answers_[answers_head_].ready) {
    const Answer answer = std::move(answers_[answers_head_]);
    ++answers_head_;
    ++first_sequence_;
    if (phase_ != Phase::commands) continue;
    last_done_ = now.mono;
    if (answer.ok) {
      respond(nsq::FrameType::response, nsq::kOk);
    } else if (!answer.error.empty()) {
      respond(nsq::FrameType::error, answer.error);
    }
    if (!answer.fatal) continue;
    RQ_SOMETIMES(answers_owed() > 0, "broker.fatal_answer_before_pipelined_publishes");
    phase_ = Phase::flushing;
    taking_ = false;
    parser_.clear();
    release_body();
    leave_channel();
  }
  if (answers_owed() == 0) {
    answers_.clear();
    answers_head_ = 0;
  } else if (answers_head_ >= kAnswersMax) {
    answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(answers_head_));
    answers_head_ = 0;
  }
}

void Session::respond(nsq::FrameType type, std::string_view payload) {
  mark_dirty();
  output_.frame(type, payload);
}

void Session::on_delivery(const queue::Delivery& delivery, Now now) {
  mark_dirty();
  // A fetch that was on its way when deliveries were stopped.
  if (!env_.gates.delivering() || delivery.expires <= now.wall) {
    env_.engine.cancel(delivery.consumer, delivery.id, delivery.token);
    env_.engine.written(delivery.consumer, delivery.body.size());
    return;
  }
  output_.message(delivery, now);
  ++messages_sent_;
  ++env_.counters.delivered_messages;
  update_writable();
}

void Session::on_policy_changed() {
  if (phase_ != Phase::closed && output_.has_messages()) close();
}

void Session::on_consumer_closed(const std::string& frame) {
  if (phase_ != Phase::commands) return;
  if (frame.empty()) {
    close();
    return;
  }
  respond(nsq::FrameType::error, frame);
  phase_ = Phase::flushing;
  taking_ = false;
  parser_.clear();
  release_body();
  leave_channel();
}

// Row of a Topic in published_; kPublishedTopicsMax when there are too many to count them one by one.
std::uint32_t Session::published_topic(std::string_view topic) {
  if (publish_topic_ < published_.size() && published_[publish_topic_].first == topic) return publish_topic_;
  topic_of_publish_.clear();
  for (std::uint32_t i = 0; i < published_.size(); ++i) {
    if (published_[i].first == topic) return i;
  }
  if (published_.size() < kPublishedTopicsMax) {
    published_.emplace_back(topic, 0);
    return static_cast<std::uint32_t>(published_.size() - 1);
  }
  topic_of_publish_ = topic;
  return static_cast<std::uint32_t>(kPublishedTopicsMax);
}

const std::string& Session::topic_of_publish() const {
  return publish_topic_ < published_.size() ? published_[publish_topic_].first : topic_of_publish_;
}

}  // namespace rq::broker
