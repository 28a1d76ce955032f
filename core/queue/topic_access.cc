// What fences and pending operations do to a Topic that exists (page 30 sections 1.6 and 13).
#include "core/base/probe.h"
#include "core/queue/fetch.h"
#include "core/queue/topic.h"

namespace rq::queue {

// Asked again after every wait (I-11). What has begun already, and what a managed operation wants, goes on.
bool Topic::refuse_operation(Operation& operation, Now now) {
  const bool own = operation.waiter == kManagedWaiter || operation.waiter == WaiterId::none;  // of the Broker itself
  if (operation_running_ || own || phase_ != Phase::live) return false;
  const ChannelLane* found = operation.channel.empty() ? nullptr : lane(operation.channel);
  if (found != nullptr && found->removing) return false;
  const Code code = shared_.access.check(name_, operation.channel, now.wall);
  if (code == Code::ok) return false;
  RQ_SOMETIMES(true, "access: an operation that waited meets a fence");
  answer(operation, code);
  return true;
}

// A consumer that would be served finds its Topic or Channel fenced: its connection is closed. A pending operation is waited for.
void Topic::refuse_consumers(ChannelLane& lane, Code code) {
  if (code == Code::management_unavailable) return;
  while (Consumer* consumer = next_ready(lane)) {
    RQ_SOMETIMES(true, "access: a consumer meets a fence");
    consumer->rdy = 0;
    const std::string_view what = code == Code::topic_tombstoned ? "topic" : "channel";
    shared_.events.closed.push_back({consumer->id, "E_DELIVERY_FAILED " + std::string(what) + " is tombstoned"});
  }
}

// A batch that was read while the Channel was closed: nobody has seen it, so the attempts do not count.
void Topic::cancel_fetch(Fetch& fetch, ChannelLane& lane, Consumer& consumer) {
  for (const Fetch::Item& item : fetch.items)
    if (lane.channel().cancel(item.reservation.message.id, item.reservation.token)) shared_.give_back_slot(consumer);
}

}  // namespace rq::queue
