// RQ_SOMETIMES: a probe that must be hit at least once over the fixed seeds and scenarios. Probes register when the program
// loads, whether or not their line ever runs, so a probe without a hit can be reported.
#pragma once

#include <cstdint>
#include <string_view>

namespace rq {

struct Probe {
  const char* name;
  std::uint64_t hits = 0;
  Probe* next = nullptr;
};

// Head of the list of all probes in this program; order is unspecified, sort by name before printing.
Probe*& probe_list() noexcept;

template <class Site>
struct ProbeAt {
  static inline Probe probe{Site::name()};
  static inline const bool linked = [] {
    probe.next = probe_list();
    probe_list() = &probe;
    return true;
  }();
};

}  // namespace rq

// The local class names the site; using `linked` registers it at load time on g++ and clang alike.
#define RQ_SOMETIMES(condition, probe_name)                      \
  do {                                                           \
    struct ProbeSite {                                           \
      static constexpr const char* name() { return probe_name; } \
    };                                                           \
    using ProbeHere = ::rq::ProbeAt<ProbeSite>;                  \
    (void)&ProbeHere::linked;                                    \
    if (condition) ++ProbeHere::probe.hits;                      \
  } while (false)
