#include "io/sim/kernel.h"

#include <cstdio>

namespace rq::sim {

void Kernel::print(std::string_view what, std::string_view who, std::uint64_t a, std::uint64_t b, std::string_view detail) const {
  std::printf("%14.6f ms  %-18.*s %.*s %llu %llu %.*s\n", static_cast<double>(now.ns) / 1e6, static_cast<int>(what.size()),
              what.data(), static_cast<int>(who.size()), who.data(), static_cast<unsigned long long>(a),
              static_cast<unsigned long long>(b), static_cast<int>(detail.size()), detail.data());
}

}  // namespace rq::sim
