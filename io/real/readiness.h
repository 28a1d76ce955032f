// Which sockets have become readable or writable: one epoll set, edge-triggered, each socket added once and never re-armed.
// The loop waits for its set as a whole through Asio, so that a turn costs one call however many sockets are ready; a wait per
// socket and message in Asio costs an epoll_ctl each (docs/performance.md). A network thread waits in its set itself.
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
  void remove(int fd);
  // Up to kBatch events; waits for the first one only if it is told to, and may come back without one.
  int take(epoll_event (&events)[kBatch], bool wait = false);

 private:
  int epoll_;
};

}  // namespace rq::real
