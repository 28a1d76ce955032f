#include "core/base/check.h"

#include <cstdlib>

namespace rq {
namespace {
CheckHandler g_handler = nullptr;
}  // namespace

CheckHandler set_check_handler(CheckHandler handler) noexcept {
  CheckHandler before = g_handler;
  g_handler = handler;
  return before;
}

void check_failed(const char* file, int line, const char* expression) noexcept {
  if (CheckHandler handler = g_handler) {
    g_handler = nullptr;
    handler(file, line, expression);
  }
  std::abort();
}

}  // namespace rq
