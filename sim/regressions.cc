#include "sim/regressions.h"

#include <charconv>

#include "sim/swarm.h"

namespace rq::sim {

bool parse_regression(std::string_view text, Regression& out, std::string& error) {
  bool seeded = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("seed ")) {
      const std::string_view digits = line.substr(5);
      const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), out.seed);
      seeded = code == std::errc() && stop == digits.data() + digits.size();
    } else if (line.starts_with("plan ")) {
      Swarm scratch;
      if (!scratch.apply(line.substr(5), error)) return false;
      out.plan.append(" ").append(line.substr(5));
    } else {
      error = "neither a comment, a seed nor a plan line: " + std::string(line);
      return false;
    }
  }
  if (!seeded) error = "no seed line";
  return seeded;
}

}  // namespace rq::sim
