// Which sockets have become readable or writable: one epoll set, edge-triggered, each socket added once and never re-armed.
// The loop waits for the set as a whole through Asio, so that a turn costs one call however many sockets are ready; a wait per
// socket and message in Asio costs an epoll_ctl each (docs/performance.md).
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace rq::real {

class Readiness {
 public:
  static constexpr int kBatch = 256;

  Readiness();
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  int fd() const { return epoll_; }
  bool add(int fd, std::uint64_t tag);  // false: errno is set. Closing the descriptor removes it.
  // Up to kBatch events without waiting.
  int take(epoll_event (&events)[kBatch]);

 private:
  int epoll_;
};

}  // namespace rq::real
