// TopicStats of page 31 section 5.7 as rows of a JSON array. What stands around the array its users write.
#pragma once

#include <memory>
#include <vector>

#include "core/base/json_writer.h"
#include "core/broker/stats_walk.h"

namespace rq::broker {

class NativeTopics : public StatsWalk {
 protected:
  explicit NativeTopics(std::vector<queue::TopicStats> topics) : StatsWalk(topics_only(std::move(topics))) {}
  void begin_topic(const queue::TopicStats& topic) final;
  void begin_channel(const queue::TopicStats& topic, const queue::ChannelStats& channel) final;
  void end_topic(const queue::TopicStats& topic) final;

  JsonWriter json_{text_};
};

// GET /v1/stats.
std::unique_ptr<Rendering> native_stats_json(std::uint64_t node_id, WallTime now, std::vector<queue::TopicStats> topics);

}  // namespace rq::broker
