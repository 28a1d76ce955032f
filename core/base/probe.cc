#include "core/base/probe.h"

namespace rq {

Probe*& probe_list() noexcept {
  static Probe* head = nullptr;
  return head;
}

}  // namespace rq
