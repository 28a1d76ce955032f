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

// A Channel with one consumer that always has a message.
class Consuming {
 public:
  void reserve() {
    now_.mono.ns += 1'000;
    if (channel_.reserve(view_, now_, kConsumer, 60 * kSecond, out_) == Reserve::reserved) in_flight.push_back(out_.message.id);
  }
  Held finish(MessageId id) { return channel_.finish(kConsumer, id, command_); }

  std::deque<MessageId> in_flight;

 private:
  static constexpr ConsumerId kConsumer{1};
  static storage::ChannelImage image() {
    storage::ChannelImage image;
    image.name = "c";
    return image;
  }
  Token tokens_ = 0;
  Channel channel_{image(), false, ChannelSettings{}, tokens_};
  EndlessView view_;
  Now now_{Instant{1'000 * kSecond}, WallTime{1'700'000'000 * kSecond}};
  Reservation out_;
  std::optional<storage::WalCommand> command_;
};

// One reservation and the FIN of the oldest, with so many in flight.
void reserve_finish(benchmark::State& state) {
  Consuming consuming;
  while (consuming.in_flight.size() < static_cast<std::size_t>(state.range(0))) consuming.reserve();
  for (auto _ : state) {
    consuming.reserve();
    benchmark::DoNotOptimize(consuming.finish(consuming.in_flight.front()));
    consuming.in_flight.pop_front();
  }
}
BENCHMARK(reserve_finish)->Arg(1)->Arg(256)->Arg(2'500)->Arg(60'000);

// FINs from the newest of a window to its oldest: the floor moves once a window.
void finish_backwards(benchmark::State& state) {
  Consuming consuming;
  for (auto _ : state) {
    while (consuming.in_flight.size() < 256) consuming.reserve();
    for (; !consuming.in_flight.empty(); consuming.in_flight.pop_back()) consuming.finish(consuming.in_flight.back());
  }
  state.SetItemsProcessed(state.iterations() * 256);
}
BENCHMARK(finish_backwards);

}  // namespace
}  // namespace rq::queue
