// Any sequence of managed operations, each crashed wherever it likes and repeated under its id, has one effect and one answer for
// each (I-55), and nothing that was deleted comes back under its fence (I-56).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "tests/queue/managed_requests.h"

namespace rq::queue {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

struct Step {
  ManagedAction action = ManagedAction::create;
  bool on_channel = false;
  int topic = 0;        // of two
  int crash_after = 0;  // events; beyond the operation's own: no crash
  bool power_loss = false;
};

rc::Gen<Step> steps() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::action,
                   rc::gen::element(ManagedAction::create, ManagedAction::create, ManagedAction::pause, ManagedAction::unpause,
                                    ManagedAction::empty, ManagedAction::remove, ManagedAction::tombstone)),
      rc::gen::set(&Step::on_channel), rc::gen::set(&Step::topic, rc::gen::inRange(0, 2)),
      rc::gen::set(&Step::crash_after, rc::gen::inRange(0, 60)), rc::gen::set(&Step::power_loss));
}

struct Model {
  std::map<std::string, bool> fenced;
  std::map<std::string, bool> exists;
};

TEST(ManagementProperty, I_55_I_56_EveryIdHasOneEffectAndOneAnswerWhateverCrashes) {
  const bool held = rc::check([] {
    const auto plan = *rc::gen::resize(30, rc::gen::container<std::vector<Step>>(steps()));
    EngineWorld w(7);
    Model model;
    std::map<std::string, std::pair<ManagedRequest, ManagedDone>> answers;
    std::uint64_t number = 0;
    for (const Step& step : plan) {
      const std::string topic = step.topic == 0 ? "t" : "u";
      w.wait([&] { return w.engine().quiet(); });
      const std::uint64_t before = w.engine().registry_revision();
      ManagedRequest request = on_topic(++number, step.action, topic, before);
      request.on_channel = step.on_channel;
      if (step.on_channel) request.channel = "c";
      if (request.sets_fence()) request.tombstone_until_ms = in_ms(w, kHourMs);
      const std::uint64_t waiter = w.manage(request);
      for (int i = 0; i < step.crash_after && !w.shard().managed.contains(waiter); ++i) w.world.step();
      const bool answered = w.shard().managed.contains(waiter);
      const ManagedDone first = answered ? w.shard().managed[waiter] : ManagedDone{};
      w.restart(step.power_loss);
      RC_ASSERT(w.engine().state() == EngineState::open);
      // Repeated as a client does: the same request, and with a fresh revision when nothing was begun.
      ManagedDone done = w.manage_and_wait(request);
      if (done.outcome.code == Code::revision_conflict) {
        w.wait([&] { return w.engine().quiet(); });
        request.expected_revision = w.engine().registry_revision();
        done = w.manage_and_wait(request);
      }
      if (answered && first.outcome.ok()) {
        RC_ASSERT(done.outcome.ok());
        RC_ASSERT(done.revision == first.revision);
        RC_ASSERT(done.changed == first.changed);
      }
      if (!done.outcome.ok()) {
        RC_ASSERT(done.outcome.code == Code::topic_not_found || done.outcome.code == Code::channel_not_found ||
                  done.outcome.code == Code::topic_tombstoned);
        continue;
      }
      answers[request.operation_id] = {request, done};
      if (!step.on_channel && step.action == ManagedAction::create) model.fenced[topic] = false;
      if (!step.on_channel && request.sets_fence()) model.fenced[topic] = true;
      if (step.action == ManagedAction::create) model.exists[topic] = true;
      if (!step.on_channel && step.action == ManagedAction::remove) model.exists[topic] = false;
      const Code publish = w.publish_and_wait(topic, {"x"});
      RC_ASSERT(publish == (model.fenced[topic] ? Code::topic_tombstoned : Code::ok));
      if (publish == Code::ok) model.exists[topic] = true;
      RC_ASSERT(w.engine().has_topic(topic) == model.exists[topic]);
    }
    w.restart(true);
    const std::uint64_t last = w.engine().registry_revision();
    for (const auto& [id, known] : answers) {
      const ManagedDone again = w.manage_and_wait(known.first);
      RC_ASSERT(again.outcome.ok());
      RC_ASSERT(again.revision == known.second.revision);
      RC_ASSERT(again.changed == known.second.changed);
    }
    RC_ASSERT(w.engine().registry_revision() == last);  // repetitions do nothing
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq::queue
