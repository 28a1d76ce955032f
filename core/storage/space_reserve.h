// Blocks behind the end of the lock file, so that a full volume can still be opened and drained (D-42b). Opening gives them back,
// and so does a volume that is about to be full; they are taken again when there is space. A file system that cannot reserve is
// named once, and the Broker goes on without.
#pragma once

#include "core/io/ports.h"

namespace rq::storage {

class SpaceReserve {
 public:
  static constexpr std::int64_t kRetryNs = 60 * kSecond;  // after a failure

  SpaceReserve(io::Host& host, std::uint64_t bytes);
  // There is space: takes the reserve unless it is held, on its way, or failed a moment ago.
  void hold(io::FileId lock, Now now);
  // There is almost none left: gives the blocks back.
  void give_back(io::FileId lock);
  bool held() const { return held_; }
  bool idle() const { return !op_.in_flight; }

 private:
  void on_reserved(io::Op& op);

  io::Host& host_;
  const std::uint64_t bytes_;
  io::Op op_;
  bool held_ = false;
  bool taking_ = false;  // what the call under way is for
  bool reported_ = false;
  Instant next_{};
};

}  // namespace rq::storage
