#include "io/real/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace rq::real {

std::thread start_thread(const std::string& name, std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));  // inherits the mask
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.c_str());
  return thread;
}

}  // namespace rq::real
