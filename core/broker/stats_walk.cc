#include "core/broker/stats_walk.h"

#include <algorithm>

namespace rq::broker {

std::uint64_t waiting_depth(const queue::TopicStats& topic, const queue::ChannelStats& channel) {
  const std::uint64_t held_back = topic.paused ? topic.unrouted_depth : 0;
  const std::uint64_t taken = channel.in_flight_count + channel.deferred_count - channel.held_deferred + held_back;
  return channel.depth > taken ? channel.depth - taken : 0;
}

std::uint64_t routed_count(const queue::TopicStats& topic, const queue::ChannelStats& channel) {
  if (!topic.paused) return channel.message_count;
  // What is not durable yet is in no count (D-25).
  const std::uint64_t held_back = topic.unrouted_depth - std::min(topic.unrouted_depth, topic.visible_unsynced);
  return channel.message_count - std::min(channel.message_count, held_back);
}

std::uint64_t memory_of(const std::vector<queue::TopicStats>& topics) {
  std::uint64_t bytes = 0;
  for (const queue::TopicStats& topic : topics) {
    bytes += sizeof(topic) + topic.name.size() + topic.channels.size() * sizeof(queue::ChannelStats);
    for (const queue::ChannelStats& channel : topic.channels)
      bytes += channel.name.size() + channel.consumers.size() * sizeof(queue::ConsumerId);
  }
  return bytes;
}

std::uint64_t memory_of(const std::vector<ClientRow>& clients) {
  std::uint64_t bytes = 0;
  for (const ClientRow& row : clients) {
    bytes += sizeof(row) + row.client_id.size() + row.hostname.size() + row.user_agent.size() + row.remote_address.size();
    bytes += row.tls_version.size() + row.tls_cipher_suite.size() + row.auth_identity.size() + row.auth_identity_url.size();
    for (const auto& [topic, count] : row.pub_counts) bytes += topic.size() + sizeof(topic) + sizeof(count);
  }
  return bytes;
}

ClientIndex::ClientIndex(const std::vector<ClientRow>& clients) {
  for (const ClientRow& row : clients)
    if (row.consumer != queue::ConsumerId::none) rows_.emplace_back(static_cast<std::uint64_t>(row.consumer), &row);
  std::sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const ClientRow* ClientIndex::find(queue::ConsumerId consumer) const {
  const auto id = static_cast<std::uint64_t>(consumer);
  const auto at =
      std::lower_bound(rows_.begin(), rows_.end(), id, [](const auto& row, std::uint64_t b) { return row.first < b; });
  return at != rows_.end() && at->first == id ? at->second : nullptr;
}

bool StatsWalk::step() {
  const bool with_clients = view_.query.include_clients;
  switch (at_) {
    case At::begin:
      begin();
      at_ = At::topic;
      break;
    case At::topic:
      if (topic_ == view_.topics.size()) {
        end_topics();
        at_ = At::producer;
        break;
      }
      begin_topic(topic());
      channel_ = 0;
      at_ = At::channel;
      break;
    case At::channel:
      if (channel_ == topic().channels.size()) {
        end_topic(topic());
        ++topic_;
        at_ = At::topic;
        break;
      }
      begin_channel(topic(), channel());
      consumer_ = 0;
      at_ = At::consumer;
      break;
    case At::consumer:
      if (!with_clients || consumer_ == channel().consumers.size()) {
        end_channel(channel());
        ++channel_;
        at_ = At::channel;
        break;
      }
      if (const ClientRow* row = index_.find(channel().consumers[consumer_++])) consumer(*row);
      break;
    case At::producer:
      if (!with_clients || producer_ == view_.clients.size()) {
        end();
        return false;
      }
      if (const ClientRow& row = view_.clients[producer_++]; !row.pub_counts.empty()) producer(row);
      break;
  }
  return true;
}

}  // namespace rq::broker
