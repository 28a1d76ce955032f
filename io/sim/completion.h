// How a port of one process hands a finished Op back. The Op is delivered in a later turn, never inline.
#pragma once

#include "core/io/ports.h"

namespace rq::sim {

struct Completion {
  virtual void complete(io::Op& op, io::Error error, std::uint64_t value) = 0;
  virtual const std::string& label() const = 0;  // the name of the process, for the trace

 protected:
  ~Completion() = default;
};

// A process died with this Op in flight: nobody will hear of it.
inline void forget(io::Op& op) {
  op.in_flight = false;
  op.next = nullptr;
}

}  // namespace rq::sim
