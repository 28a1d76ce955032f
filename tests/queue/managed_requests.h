// Managed requests as tests write them.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "tests/queue/engine_world.h"

namespace rq::queue {

inline std::string operation_id(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "operation-%08llu", static_cast<unsigned long long>(number));
  return text;
}

inline ManagedRequest on_topic(std::uint64_t id, ManagedAction action, std::string_view topic, std::uint64_t revision) {
  ManagedRequest request;
  request.operation_id = operation_id(id);
  request.action = action;
  request.topic = topic;
  request.expected_revision = revision;
  return request;
}

inline ManagedRequest on_channel(std::uint64_t id, ManagedAction action, std::string_view topic, std::string_view channel,
                                 std::uint64_t revision) {
  ManagedRequest request = on_topic(id, action, topic, revision);
  request.on_channel = true;
  request.channel = channel;
  return request;
}

inline ManagedRequest until(ManagedRequest request, std::int64_t ms) {
  request.tombstone_until_ms = ms;
  return request;
}

inline std::int64_t in_ms(EngineWorld& world, std::int64_t ms) { return world.now().wall.ms() + ms; }

}  // namespace rq::queue
