// The clients of a run: each a process of its own, and what they have yet to do.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/actor.h"
#include "sim/administrator.h"
#include "sim/consumer.h"
#include "sim/producer.h"

namespace rq::sim {

class Cast {
 public:
  Cast(Stage& stage, SimDisk& disk) : stage_(stage), disk_(disk) {}
  Cast(const Cast&) = delete;

  void populate();
  // That many consumers more, and one of its dead letters if there can be some.
  void subscribe(const std::string& topic, const std::string& channel, std::int64_t count);
  void poke_all();
  // The network between one of them and the Broker is cut for a while, one way or both.
  void partition(Random& draws);
  void cut_off();  // all of them, until the world heals
  bool drained();  // everything acknowledged is finished, and /stats shows nothing left
  Administrator& administrator() { return *administrator_; }

 private:
  template <class A, class... Args>
  A* add(const std::string& name, Args... args) {
    Process& process = stage_.world.make_process(name, disk_, [this, args...](io::Host& host, io::Turn&) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new A(stage_, host, args...),
                                                              [](io::Shard* shard) { delete static_cast<A*>(shard); });
    });
    process.start();
    process.poke();
    actors_.push_back(&process);
    return static_cast<A*>(process.shard());
  }

  Stage& stage_;
  SimDisk& disk_;
  Administrator* administrator_ = nullptr;
  std::vector<Producer*> producers_;
  std::vector<Consumer*> consumers_;
  std::vector<Process*> actors_;
};

}  // namespace rq::sim
