// Bits of sealed data that flip, and the operator who brings a file back when the Broker has named it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "io/sim/world.h"

namespace rq::sim {

class Rot {
 public:
  explicit Rot(SimDisk& disk) : disk_(disk) {}

  // A bit of a segment that is sealed, or of its sidecar, flips.
  void flip(Random& draws);
  // The operator brings the file back that the fault names. False if no damaged file is named.
  bool mend(const std::string& reason);
  void mend_all();

  std::uint64_t flipped() const { return flipped_; }
  std::uint64_t found() const { return found_; }  // flips that ended the Broker with their file named

 private:
  SimDisk& disk_;
  std::set<std::string> rotten_;  // ever: a fault may be met before the file was mended and end the Broker after
  std::uint64_t flipped_ = 0, found_ = 0;
};

}  // namespace rq::sim
