#include "core/broker/session_table.h"

#include <utility>

#include "core/base/check.h"

namespace rq::broker {
namespace {
std::uint32_t slot_of(queue::WaiterId waiter) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(waiter) >> 32 & 0xffffff);
}
}  // namespace

void SessionTable::add(io::StreamId stream, Now now) {
  std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
    consumer_of_.push_back(queue::ConsumerId::none);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot] = std::make_unique<Session>(env_, slot, stream, now);
  ++count_;
  touch(slot);
}

void SessionTable::touch(std::uint32_t slot) {
  Session& session = *slots_[slot];
  if (session.touched) return;
  session.touched = true;
  touched_.push_back(slot);
}

Session* SessionTable::of_consumer(queue::ConsumerId consumer) {
  const auto found = consumers_.find(static_cast<std::uint64_t>(consumer));
  if (found == consumers_.end()) return nullptr;
  Session* session = at(found->second);
  return session != nullptr && session->consumer() == consumer ? session : nullptr;
}

void SessionTable::route(queue::Events& events, Now now) {
  const auto asked = [&](queue::WaiterId waiter) -> Session* {
    if (waiter_kind(waiter) != WaiterKind::session) return nullptr;
    Session* session = at(slot_of(waiter));
    RQ_CHECK(session != nullptr);
    return session;
  };
  for (const queue::PublishDone& done : events.published) {
    if (Session* session = asked(done.waiter)) {
      session->on_published(static_cast<std::uint32_t>(static_cast<std::uint64_t>(done.waiter)), done.outcome, now);
    }
  }
  for (const queue::SubscribeDone& done : events.subscribed) {
    Session* session = asked(done.waiter);
    if (session == nullptr) continue;
    session->on_subscribed(done, now);
    if (session->consumer() != queue::ConsumerId::none) {
      const std::uint32_t slot = slot_of(done.waiter);
      consumers_.emplace(static_cast<std::uint64_t>(session->consumer()), slot);
      consumer_of_[slot] = session->consumer();
    }
  }
  Session* session = nullptr;
  std::size_t changes = 0;
  const auto change_policies = [&](std::size_t deliveries) {
    for (; changes < events.policy_changes.size() && events.policy_changes[changes].deliveries <= deliveries; ++changes)
      if (Session* found = of_consumer(events.policy_changes[changes].consumer)) found->on_policy_changed();
  };
  for (std::size_t i = 0; i < events.deliveries.size(); ++i) {
    const queue::Delivery& delivery = events.deliveries[i];
    change_policies(i);
    if (session == nullptr || session->consumer() != delivery.consumer) session = of_consumer(delivery.consumer);
    if (session != nullptr) session->on_delivery(delivery, now);
  }
  change_policies(events.deliveries.size());
  for (const queue::CommandDone& done : events.commands) {
    if (session == nullptr || session->consumer() != done.consumer) session = of_consumer(done.consumer);
    if (session != nullptr) session->on_command_done(done);
  }
  for (const queue::TimedOut& timed_out : events.timed_out) {
    if (Session* found = of_consumer(timed_out.consumer)) found->on_timed_out();
  }
  for (const queue::ConsumerClosed& closed : events.closed) {
    if (Session* found = of_consumer(closed.consumer)) found->on_consumer_closed(closed.frame);
  }
}

void SessionTable::on_auth(AuthAnswer answer, Now now) {
  if (Session* session = at(answer.slot)) session->on_auth(std::move(answer), now);
}

bool SessionTable::resume(Now now) {
  if (env_.dirty.empty()) return false;
  std::swap(work_, env_.dirty);
  for (const std::uint32_t slot : work_) {
    Session* session = at(slot);
    if (session == nullptr) continue;
    session->dirty = false;
    touch(slot);
    session->resume(now);
  }
  work_.clear();
  return true;
}

void SessionTable::flush(Now now) {
  for (const std::uint32_t slot : touched_) {
    Session& session = *slots_[slot];
    session.touched = false;
    session.flush(now);
    if (consumer_of_[slot] != session.consumer()) {
      consumers_.erase(static_cast<std::uint64_t>(consumer_of_[slot]));
      consumer_of_[slot] = queue::ConsumerId::none;
    }
    if (!session.can_be_destroyed()) {
      deadlines_.lower(slot, session.next_deadline());
      continue;
    }
    deadlines_.remove(slot);
    slots_[slot].reset();
    free_.push_back(slot);
    --count_;
  }
  touched_.clear();
}

void SessionTable::expire(Now now) {
  while (deadlines_.earliest() <= now.mono) {
    const std::uint32_t slot = deadlines_.pop();
    Session& session = *slots_[slot];
    const Instant deadline = session.next_deadline();
    if (deadline > now.mono) {
      deadlines_.lower(slot, deadline);
      continue;
    }
    session.expire(now);
    touch(slot);  // flush() sets the next deadline
  }
}

}  // namespace rq::broker
