// What /stats may never show, seen from outside (page 30 sections 3.10 and 14, D-25): counters that go back while a Channel
// lives, whatever crashes lay between, more messages in flight and deferred than there are (I-33, I-53), and a pause that is
// gone.
//
//  C1 What was paused or unpaused stays so once that was answered. Where an answer was lost nothing is said.
//  C2 A Channel or Topic that was removed starts anew; while that is under way, and for ever if its answer was lost, nothing is
//  said.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rq::sim {

class StatsWatch {
 public:
  // A whole /stats document in nsqd's JSON. The first contradiction, or an empty text.
  std::string look(const boost::json::value& document);
  void pause_sent(std::string_view topic, std::string_view channel);
  void pause_ended(std::string_view topic, std::string_view channel, std::optional<bool> paused, bool answered);
  void removal_sent(std::string_view topic, std::string_view channel);  // an empty channel: the whole Topic
  void removal_ended(std::string_view topic, std::string_view channel, bool answered);

 private:
  struct Seen {
    std::uint64_t messages = 0, requeues = 0, timeouts = 0;
    bool removing = false, doubtful = false, pause_doubtful = false;
    std::optional<bool> paused;  // answered
  };
  template <class Change>
  void change(std::string_view topic, std::string_view channel, Change change);
  std::map<std::string, Seen> seen_;  // "topic" and "topic/channel"
};

}  // namespace rq::sim
