// Planted bugs, and rare paths that the core offers; each site is on or off for a whole run and has a stream of its own.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/base/random.h"
#include "core/io/ports.h"

namespace rq::sim {

class SimChaos final : public io::Chaos {
 public:
  // `rate`: per 1024 visits of a site that is on.
  SimChaos(std::set<std::string> plants, Random random, std::uint32_t rate)
      : plants_(std::move(plants)), random_(random), rate_(rate) {}
  bool fire(const char* site, std::uint32_t) override {
    if (rate_ == 0) return false;
    auto found = sites_.find(site);
    if (found == sites_.end()) found = sites_.emplace(site, Site(random_.split(site))).first;
    return found->second.on && found->second.draws.chance(rate_);
  }
  bool planted(const char* bug) override { return plants_.contains(bug); }
  void calm() { rate_ = 0; }

 private:
  struct Site {
    explicit Site(Random random) : draws(random), on(draws.chance(512)) {}
    Random draws;
    bool on;
  };
  std::set<std::string> plants_;
  Random random_;
  std::uint32_t rate_;
  std::map<std::string, Site, std::less<>> sites_;
};

}  // namespace rq::sim
