// The order in which statistics are rendered: Topics, their Channels, the consumers of each; then the producers. Text, JSON and
// the native forms say what each of them looks like.
#pragma once

#include "core/broker/rendering.h"
#include "core/broker/stats_view.h"

namespace rq::broker {

class StatsWalk : public Rendering {
 protected:
  explicit StatsWalk(StatsView view) : view_(std::move(view)), index_(view_.clients) {}

  virtual void begin() = 0;
  virtual void begin_topic(const queue::TopicStats& topic) = 0;
  virtual void begin_channel(const queue::TopicStats& topic, const queue::ChannelStats& channel) = 0;
  virtual void consumer(const ClientRow&) {}  // of the Channel
  virtual void end_channel(const queue::ChannelStats&) {}
  virtual void end_topic(const queue::TopicStats&) {}
  virtual void end_topics() {}
  virtual void producer(const ClientRow&) {}  // that has published
  virtual void end() = 0;

  // For what has no use for clients.
  static StatsView topics_only(std::vector<queue::TopicStats> topics) {
    StatsView view;
    view.query.include_clients = false;
    view.topics = std::move(topics);
    return view;
  }

  const StatsView view_;

 private:
  enum class At : std::uint8_t { begin, topic, channel, consumer, producer };
  bool step() final;
  const queue::TopicStats& topic() const { return view_.topics[topic_]; }
  const queue::ChannelStats& channel() const { return topic().channels[channel_]; }

  const ClientIndex index_;
  At at_ = At::begin;
  std::size_t topic_ = 0, channel_ = 0, consumer_ = 0, producer_ = 0;
};

}  // namespace rq::broker
