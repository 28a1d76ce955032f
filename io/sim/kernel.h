// What disks, network and processes of one world share: virtual time, the event queue, named random streams, the trace.
//
//  I1 Virtual time never goes back; an event pushed into the past runs now.
//  I2 Every draw comes from a stream named after its purpose: switching one fault off does not move the draws of another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/random.h"
#include "io/sim/event_queue.h"
#include "io/sim/world.h"

namespace rq::sim {

struct Kernel {
  Kernel(std::uint64_t world_seed, WorldOptions world_options)
      : seed(world_seed), options(world_options), root(world_seed), ties(root.split("schedule/ties")) {}

  std::uint64_t seed;
  WorldOptions options;
  Random root;
  Random ties;
  Instant now{};
  EventQueue queue;
  Hasher hash;
  std::uint64_t events = 0;
  FaultCounts counts;
  NetFaults net;
  io::Chaos* chaos = nullptr;
  std::function<void(std::string_view, io::Level, std::string_view, std::string_view)> log;

  void push(Instant at, EventTarget& target, std::uint32_t kind, std::uint64_t a = 0, std::uint64_t b = 0) {
    queue.push(at < now ? now : at, static_cast<std::uint32_t>(ties.next() >> 40), {&target, kind, a, b});
  }
  // One step of the trace. Never pass pointers; `what` and `who` are names, the rest numbers that the seed decides.
  void trace(std::string_view what, std::string_view who, std::uint64_t a = 0, std::uint64_t b = 0) {
    hash.add(static_cast<std::uint64_t>(now.ns));
    hash.add(what);
    hash.add(who);
    hash.add(a);
    hash.add(b);
    if (options.trace) [[unlikely]]
      print(what, who, a, b, {});
  }
  void note(std::string_view text) {
    hash.add(static_cast<std::uint64_t>(now.ns));
    hash.add(text);
    if (options.trace) [[unlikely]]
      print("note", text, 0, 0, {});
  }
  void print(std::string_view what, std::string_view who, std::uint64_t a, std::uint64_t b, std::string_view detail) const;
};

// Uniform in [low, high], or low when the bounds are the wrong way round.
inline std::int64_t draw_ns(Random& stream, std::int64_t low, std::int64_t high) {
  const std::uint64_t span = high > low ? static_cast<std::uint64_t>(high - low) : 0;
  return low + static_cast<std::int64_t>(stream.below(span + 1));
}

}  // namespace rq::sim
