// Which Topics and Channels may be touched: fences, pending operations, and whether the fences of the control plane are known
// (page 30 sections 1.6 and 13). Asked by every command, so an answer costs one comparison while nothing is closed.
//
//  I1 Order of the checks: fences known, no pending operation on the Topic, no fence of the Topic, no fence of the Channel.
//  I2 A fence is active while its end lies after the wall clock, so a clock that steps back activates a stored one again (I-56).
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/queue/engine.h"
#include "core/storage/management_files.h"

namespace rq::queue {

class Access {
 public:
  // ok, management_unavailable, topic_tombstoned or channel_tombstoned. An empty Channel asks about the Topic alone.
  Code check(std::string_view topic, std::string_view channel, WallTime now) const {
    return open_ ? Code::ok : look_up(topic, channel, now);
  }
  Code check(std::string_view topic, WallTime now) const { return check(topic, {}, now); }

  bool fenced(std::string_view topic, WallTime now) const;  // by a fence of the Topic, whatever else is closed

  bool ready() const { return ready_; }
  void set_ready(bool ready);
  const storage::ManagementFences& fences() const { return fences_; }
  void set_fences(storage::ManagementFences fences);
  bool blocked(std::string_view topic) const { return blocked_.contains(topic); }
  void block(std::string_view topic);  // an operation is pending
  void unblock(std::string_view topic);

 private:
  Code look_up(std::string_view topic, std::string_view channel, WallTime now) const;
  void update();

  bool open_ = true;  // nothing is closed to anybody
  bool ready_ = true;
  storage::ManagementFences fences_;
  std::set<std::string, std::less<>> blocked_;
};

}  // namespace rq::queue
