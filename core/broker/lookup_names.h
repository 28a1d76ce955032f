// The Topic and Channel names of this Broker as nsqlookupd servers hear of them (page 10 section 7.6, D-19a): what is there, the
// commands that a change makes, and a walk over everything for a server that knows nothing yet.
//
//  I1 A Topic is registered by its Channels, or by itself while it has none. A Topic that goes takes its Channels first.
//  I2 A walk survives changes: a name that comes or goes behind it is in the commands that the change made.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue/engine.h"

namespace rq::broker {

class LookupNames {
 public:
  using Commands = std::vector<std::string>;  // lines, each with its LF

  // What there is now, ordered by name; the commands for the differences are appended, and the names of Topics that are new.
  void update(const std::vector<queue::TopicStats>& topics, Commands& out, std::vector<std::string>& fresh);
  // The name was deleted; it may have come back already, as another one, which the next update() finds. An empty `channel` is the
  // Topic.
  void remove(std::string_view topic, std::string_view channel, Commands& out);
  void clear() { topics_.clear(); }

  struct Walk {
    std::string topic, channel;  // the last ones given
    bool begun = false;
  };
  // The next REGISTER of a walk; false at its end.
  bool next(Walk& walk, std::string& line) const;

  std::uint64_t count() const;  // Topics and Channels

 private:
  using Channels = std::set<std::string, std::less<>>;
  static void remove_topic(std::string_view topic, const Channels& channels, Commands& out);
  static void update_channels(std::string_view topic, Channels& known, const queue::TopicStats& now, Commands& out);

  std::map<std::string, Channels, std::less<>> topics_;
};

}  // namespace rq::broker
