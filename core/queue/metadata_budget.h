// The budget of message metadata (page 30 section 7.1): 64 bytes for each message of an active tail, 65,536 for a cached page of
// a sealed segment. A request that does not fit waits while the largest tails are sealed; it is never refused.
//
//  I1 After every append tails <= limit - one page, but for a single request larger than that: it is appended when there is no
//     tail at all, and its segment is sealed at once.
//  I2 Requests are admitted in the order in which their Topics asked, so that a large one is not overtaken for ever.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace rq::queue {

class Topic;

class MetadataBudget {
 public:
  static constexpr std::uint64_t kMessageBytes = 64;

  // What the budget knows of one Topic; a member of the Topic.
  struct Tail {
    std::uint64_t messages = 0;
    bool sealing = false;  // was asked to seal
    bool waiting = false;  // has a request that was not admitted
  };

  // `bytes` is storage.message_index_cache_bytes, at least 65,536.
  explicit MetadataBudget(std::uint64_t bytes);

  // The active segment of the Topic holds that many messages now.
  void set_active(Topic& topic, std::uint64_t messages);
  // A request of so many messages wants to be appended. False: it has to wait; the Topic is marked when it should ask again.
  bool admit(Topic& topic, std::uint64_t messages);
  // The Topic was just appended to: it seals its segment if tails are above their share now.
  void after_append(Topic& topic);
  // Its request was dropped.
  void leave(Topic& topic);
  // Seals until the tails are within their share: what was recovered may be above it.
  void shrink() { seal_for(0); }

  std::uint64_t active_bytes() const { return active_ * kMessageBytes; }
  // What tails leave for cached pages, in bytes.
  std::uint64_t left_for_pages() const;

 private:
  bool fits(std::uint64_t tails, std::uint64_t messages) const;
  void seal_for(std::uint64_t messages);
  void seal(Topic& topic);
  void wake();

  std::uint64_t bytes_;
  std::uint64_t active_max_;                                           // messages
  std::uint64_t active_ = 0;                                           // messages
  std::uint64_t sealing_ = 0;                                          // of these, in tails that are being sealed
  std::map<std::pair<std::uint64_t, std::uint64_t>, Topic*> by_size_;  // the other tails: messages, Topic::owner()
  std::deque<Topic*> waiting_;
};

}  // namespace rq::queue
