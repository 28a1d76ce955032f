// The state of a Channel: ack set, deadlines, and selection with its FIN.
#include <benchmark/benchmark.h>

#include <deque>

#include "core/base/deadline_lanes.h"
#include "core/queue/ack_set.h"
#include "core/queue/channel.h"

namespace rq::queue {
namespace {

// Positions acknowledged in an order that is out by `distance`, the floor following.
void ack_set(benchmark::State& state) {
  const auto distance = static_cast<Position>(state.range(0));
  AckSet acks;
  Position position = 1, floor = 0;
  for (auto _ : state) {
    acks.insert(position % 2 == 0 ? position : position + distance * 2);
    if (++position % 64 != 0) continue;
    floor = acks.next_clear(floor + 1) - 1;
    if (position > floor + distance * 4) floor = position - distance * 4;
    acks.erase_through(floor);
  }
}
BENCHMARK(ack_set)->Arg(1)->Arg(256)->Arg(16'384);

struct Timed : DeadlineNode {};

// Arms one and disarms one, with so many standing.
void deadlines(benchmark::State& state, bool one_timeout) {
  std::deque<Timed> nodes(static_cast<std::size_t>(state.range(0)));
  DeadlineLanes<Timed> lanes;
  std::int64_t now = 0;
  const auto timeout = [&](std::size_t i) { return one_timeout ? kSecond : kSecond + static_cast<std::int64_t>(i % 64) * 1'000; };
  for (std::size_t i = 0; i < nodes.size(); ++i) lanes.arm(nodes[i], Instant{++now} + timeout(i), timeout(i));
  std::size_t at = 0;
  for (auto _ : state) {
    lanes.disarm(nodes[at]);
    lanes.arm(nodes[at], Instant{++now} + timeout(at), timeout(at));
    benchmark::DoNotOptimize(lanes.earliest());
    at = (at + 1) % nodes.size();
  }
  while (Timed* node = lanes.first()) lanes.disarm(*node);
}
void deadline_lane(benchmark::State& state) { deadlines(state, true); }
void deadline_tree(benchmark::State& state) { deadlines(state, false); }
BENCHMARK(deadline_lane)->Arg(256)->Arg(65'536);
BENCHMARK(deadline_tree)->Arg(256)->Arg(65'536);

// A log without end in which nothing is missing or delayed: what is measured is the Channel.
class EndlessView final : public MessageView {
 public:
  Lookup find(Position position, MessageMeta& out) override {
    out = MessageMeta{};
    out.position = position;
    out.id = position;
    out.body_bytes = 1'024;
    return Lookup::found;
  }
  Position deliverable() const override { return Position{1} << 60; }
  Position next_present(Position from) const override { return from; }
  std::uint64_t absent_count(Position, Position) const override { return 0; }
  Due due(const MessageMeta&) const override { return {WallTime{0}, Instant::never()}; }
};

// One reservation and the FIN of the oldest, with so many in flight.
void reserve_finish(benchmark::State& state) {
  Token tokens = 0;
  storage::ChannelImage image;
  image.name = "c";
  Channel channel(image, false, ChannelSettings{}, tokens);
  EndlessView view;
  Now now{Instant{1'000 * kSecond}, WallTime{1'700'000'000 * kSecond}};
  Reservation out;
  std::optional<storage::WalCommand> command;
  const ConsumerId consumer{1};
  std::deque<MessageId> in_flight;
  const auto reserve = [&] {
    now.mono.ns += 1'000;
    if (channel.reserve(view, now, consumer, 60 * kSecond, out) == Reserve::reserved) in_flight.push_back(out.message.id);
  };
  while (in_flight.size() < static_cast<std::size_t>(state.range(0))) reserve();
  for (auto _ : state) {
    reserve();
    benchmark::DoNotOptimize(channel.finish(consumer, in_flight.front(), command));
    in_flight.pop_front();
  }
}
BENCHMARK(reserve_finish)->Arg(1)->Arg(256)->Arg(2'500)->Arg(60'000);

// FINs from the newest of a window to its oldest: the floor moves once a window.
void finish_backwards(benchmark::State& state) {
  Token tokens = 0;
  storage::ChannelImage image;
  image.name = "c";
  Channel channel(image, false, ChannelSettings{}, tokens);
  EndlessView view;
  Now now{Instant{1'000 * kSecond}, WallTime{1'700'000'000 * kSecond}};
  Reservation out;
  std::optional<storage::WalCommand> command;
  std::vector<MessageId> in_flight;
  for (auto _ : state) {
    while (in_flight.size() < 256) {
      channel.reserve(view, now, ConsumerId{1}, 60 * kSecond, out);
      in_flight.push_back(out.message.id);
    }
    for (; !in_flight.empty(); in_flight.pop_back()) channel.finish(ConsumerId{1}, in_flight.back(), command);
  }
  state.SetItemsProcessed(state.iterations() * 256);
}
BENCHMARK(finish_backwards);

}  // namespace
}  // namespace rq::queue
