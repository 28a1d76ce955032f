// Checks that stay on in every build. A failed check is a bug in this program, never bad input: input errors are Results.
#pragma once

namespace rq {

// Called once with the failed expression before the process aborts. The simulator installs one that prints the seed.
using CheckHandler = void (*)(const char* file, int line, const char* expression);
CheckHandler set_check_handler(CheckHandler handler) noexcept;

[[noreturn]] void check_failed(const char* file, int line, const char* expression) noexcept;

}  // namespace rq

#define RQ_CHECK(expression)                               \
  do {                                                     \
    if (!(expression)) [[unlikely]]                        \
      ::rq::check_failed(__FILE__, __LINE__, #expression); \
  } while (false)

// Expensive checks: on in the simulator, tests and fuzzers (RQ_EXPENSIVE_CHECKS), off in release builds.
#ifdef RQ_EXPENSIVE_CHECKS
#define RQ_VERIFY(expression) RQ_CHECK(expression)
#else
#define RQ_VERIFY(expression) \
  do {                        \
  } while (false)
#endif
