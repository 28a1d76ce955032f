#include "io/real/readiness.h"

#include <unistd.h>

#include "core/base/check.h"

namespace rq::real {

Readiness::Readiness() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) { RQ_CHECK(epoll_ >= 0); }

Readiness::~Readiness() { ::close(epoll_); }

bool Readiness::add(int fd, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Readiness::remove(int fd) {
  epoll_event ignored{};
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, &ignored);
}

int Readiness::take(epoll_event (&events)[kBatch], bool wait) {
  const int count = ::epoll_wait(epoll_, events, kBatch, wait ? -1 : 0);
  return count < 0 ? 0 : count;
}

}  // namespace rq::real
