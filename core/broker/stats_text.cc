// /stats as text: the columns of page 10 section 6.7.
#include <fmt/format.h>

#include <array>

#include "core/broker/civil_time.h"
#include "core/broker/stats_view.h"

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
  if (row.pub_counts.empty()) {
    fmt::format_to(out, "{}[V2 {:<21}] state: {} inflt: {:<4} rdy: {:<4} fin: {:<8} re-q: {:<8} msgs: {:<8} connected: {}\n",
                   indent, name, row.state, row.in_flight_count, row.ready_count, row.finish_count, row.requeue_count,
                   row.message_count, connected);
    return;
  }
  // A subscriber that has also published is printed in this form everywhere, as nsqd does.
  std::uint64_t total = 0;
  std::string topics;
  for (const auto& [topic, count] : row.pub_counts) {
    total += count;
    topics += fmt::format("{}{}={}", topics.empty() ? "" : ",", topic, count);
  }
  fmt::format_to(out, "{}[V2 {:<21}] msgs: {:<8} topics: {} connected: {}\n", indent, name, total, topics, connected);
}

void put_channel(Out out, const StatsView& view, const ClientIndex& index, const queue::TopicStats& topic,
                 const queue::ChannelStats& channel) {
  const std::uint64_t depth = waiting_depth(topic, channel);
  fmt::format_to(out,
                 "   {}[{:<25}] depth: {:<5} be-depth: {:<5} inflt: {:<4} def: {:<4} re-q: {:<5} timeout: {:<5} msgs: {:<8} "
                 "e2e%: \n",
                 channel.paused ? "*P " : "   ", channel.name, depth, depth, channel.in_flight_count, channel.deferred_count,
                 channel.requeue_count, channel.timeout_count, routed_count(topic, channel));
  if (!view.query.include_clients) return;
  for (const queue::ConsumerId consumer : channel.consumers)
    if (const ClientRow* row = index.find(consumer)) put_client(out, view, *row, true);
}

}  // namespace

std::string stats_text(const StatsView& view) {
  static constexpr std::array<std::string_view, 9> kMemory = {"heap_objects",        "heap_idle_bytes",   "heap_in_use_bytes",
                                                              "heap_released_bytes", "gc_pause_usec_100", "gc_pause_usec_99",
                                                              "gc_pause_usec_95",    "next_gc_bytes",     "gc_total_runs"};
  const ClientIndex index(view.clients);
  std::string text;
  const Out out(text);
  fmt::format_to(out, "nsqd v{} (built w/c++20)\nstart_time {}\nuptime {}\n\nHealth: {}\n", view.version,
                 rfc3339_seconds(view.start_time_unix), duration_text(view.now.wall.ns - view.start_time_unix * kSecond),
                 view.health);
  if (view.query.include_mem) {
    fmt::format_to(out, "\nMemory:\n");
    for (const std::string_view key : kMemory) fmt::format_to(out, "   {:<25}\t0\n", key);
  }
  fmt::format_to(out, "\nTopics:{}", view.topics.empty() ? " None\n" : "");
  for (const queue::TopicStats& topic : view.topics) {
    fmt::format_to(out, "\n{}[{:<15}] depth: {:<5} be-depth: {:<5} msgs: {:<8} e2e%: \n", topic.paused ? "*P " : "   ",
                   topic.name, topic.unrouted_depth, topic.unrouted_depth, topic.published_count);
    for (const queue::ChannelStats& channel : topic.channels) put_channel(out, view, index, topic, channel);
  }
  bool any = false;
  for (const ClientRow& row : view.clients) {
    if (!view.query.include_clients || row.pub_counts.empty()) continue;
    if (!any) fmt::format_to(out, "\nProducers:\n");
    any = true;
    put_client(out, view, row, false);
  }
  if (!any) fmt::format_to(out, "\nProducers: None\n");
  return text;
}

}  // namespace rq::broker
