// /stats as text: the columns of page 10 section 6.7.
#include <fmt/format.h>

#include "core/broker/civil_time.h"
#include "core/broker/stats_walk.h"

namespace rq::broker {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string_view port_of(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
}

void put_client(Out out, const StatsView& view, const ClientRow& row, bool under_channel) {
  const std::int64_t connected_s = view.now.wall.ns / kSecond - row.connect_ts;
  const std::string name = fmt::format("{}:{} {}", row.hostname, port_of(row.remote_address), row.user_agent);
  const std::string connected = duration_text(connected_s * kSecond);
  const std::string_view indent = under_channel ? "        " : "   ";
  // As nsqd: a filter leaves only its Topic of what a client published.
  std::uint64_t total = 0;
  std::string topics;
  for (const auto& [topic, count] : row.pub_counts) {
    if (!view.query.topic.empty() && topic != view.query.topic) continue;
    total += count;
    topics += fmt::format("{}{}={}", topics.empty() ? "" : ",", topic, count);
  }
  if (topics.empty()) {
    fmt::format_to(out, "{}[V2 {:<21}] state: {} inflt: {:<4} rdy: {:<4} fin: {:<8} re-q: {:<8} msgs: {:<8} connected: {}\n",
                   indent, name, row.state, row.in_flight_count, row.ready_count, row.finish_count, row.requeue_count,
                   row.message_count, connected);
    return;
  }
  // A subscriber that has also published is printed in this form everywhere, as nsqd does.
  fmt::format_to(out, "{}[V2 {:<21}] msgs: {:<8} topics: {} connected: {}\n", indent, name, total, topics, connected);
}

class StatsText final : public StatsWalk {
 public:
  explicit StatsText(StatsView view) : StatsWalk(std::move(view)) {}

 private:
  void begin() override {
    fmt::format_to(out_, "nsqd v{} (built w/c++20)\nstart_time {}\nuptime {}\n\nHealth: {}\n", view_.version,
                   rfc3339_seconds(view_.start_time_unix), duration_text(view_.now.wall.ns - view_.start_time_unix * kSecond),
                   view_.health);
    if (view_.query.include_mem) {
      fmt::format_to(out_, "\nMemory:\n");
      for (const std::string_view key : kMemoryKeys) fmt::format_to(out_, "   {:<25}\t0\n", key);
    }
    fmt::format_to(out_, "\nTopics:{}", view_.topics.empty() ? " None\n" : "");
  }
  void begin_topic(const queue::TopicStats& topic) override {
    fmt::format_to(out_, "\n{}[{:<15}] depth: {:<5} be-depth: {:<5} msgs: {:<8} e2e%: \n", topic.paused ? "*P " : "   ",
                   topic.name, topic.unrouted_depth, topic.unrouted_depth, topic.published_count);
  }
  void begin_channel(const queue::TopicStats& topic, const queue::ChannelStats& channel) override {
    const std::uint64_t depth = waiting_depth(topic, channel);
    fmt::format_to(out_,
                   "   {}[{:<25}] depth: {:<5} be-depth: {:<5} inflt: {:<4} def: {:<4} re-q: {:<5} timeout: {:<5} msgs: {:<8} "
                   "e2e%: \n",
                   channel.paused ? "*P " : "   ", channel.name, depth, depth, channel.in_flight_count,
                   channel.deferred_count - channel.held_deferred, channel.requeue_count, channel.timeout_count,
                   routed_count(topic, channel));
  }
  void consumer(const ClientRow& row) override { put_client(out_, view_, row, true); }
  void producer(const ClientRow& row) override {
    if (!std::exchange(producers_, true)) fmt::format_to(out_, "\nProducers:\n");
    put_client(out_, view_, row, false);
  }
  void end() override {
    if (!producers_) fmt::format_to(out_, "\nProducers: None\n");
  }

  const Out out_{text_};
  bool producers_ = false;
};

}  // namespace

std::unique_ptr<Rendering> stats_text(StatsView view) { return std::make_unique<StatsText>(std::move(view)); }

}  // namespace rq::broker
