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
  table_.add([&](std::uint32_t slot) { return std::make_unique<Session>(env_, slot, stream, now); });
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
    table_.note_consumer(slot_of(done.waiter));
  }
  Session* session = nullptr;  // of the latest delivery: they come in runs
  const auto find = [&](queue::ConsumerId consumer) {
    if (session == nullptr || session->consumer() != consumer) session = table_.of_consumer(consumer);
    return session;
  };
  in_order(
      events,
      [&](const queue::Delivery& delivery) {
        if (Session* found = find(delivery.consumer)) found->on_delivery(delivery, now);
      },
      [&](queue::ConsumerId consumer) {
        if (Session* found = table_.of_consumer(consumer)) found->on_policy_changed();
      });
  for (const queue::CommandDone& done : events.commands) {
    if (Session* found = find(done.consumer)) found->on_command_done(done);
  }
  for (const queue::TimedOut& timed_out : events.timed_out) {
    if (Session* found = table_.of_consumer(timed_out.consumer)) found->on_timed_out();
  }
  for (const queue::ConsumerClosed& closed : events.closed) {
    if (Session* found = table_.of_consumer(closed.consumer)) found->on_consumer_closed(closed.frame);
  }
}

void SessionTable::on_auth(AuthAnswer answer, Now now) {
  if (Session* session = at(answer.slot)) session->on_auth(std::move(answer), now);
}

}  // namespace rq::broker
