// broker.meta at run time: message ids in reserved blocks and the registry revision (page 20 section 2.4).
//
//  I1 No id is given out before a broker.meta that covers it is durable (I-07); a restart skips the rest of the block.
//  I2 revision() is what is stored; it never goes down.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/storage/script.h"

namespace rq::storage {

class MetaStore {
 public:
  MetaStore(io::Host& host, ScriptRetries& retries, std::string path, std::uint64_t node_id, std::uint64_t next_sequence,
            std::uint64_t revision);

  enum class Ids { ok, wait, exhausted };
  // Takes `count` consecutive ids; `first` is the first one. wait: a block is being reserved, try again when moved().
  Ids take(std::uint64_t count, MessageId& first);
  void bump_revision() { ++revision_wanted_; }
  std::uint64_t revision() const { return revision_stored_; }
  std::uint64_t revision_wanted() const { return revision_wanted_; }  // above revision() while a change is not stored

  void settle();  // starts a write when something changed and none is running
  bool moved();   // a write completed since the last call
  bool idle() const { return !script_; }
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  static void on_done(void* self, Script& script);

  io::Host& host_;
  ScriptRetries& retries_;
  std::string path_;
  std::uint64_t node_id_;
  std::uint64_t first_;           // as found at start
  std::uint64_t next_;            // next sequence to give out
  std::uint64_t reserved_;        // durable exclusive end
  std::uint64_t reserve_wanted_;  // exclusive end to store
  std::uint64_t reserve_writing_ = 0;
  std::uint64_t revision_stored_;
  std::uint64_t revision_wanted_;
  std::uint64_t revision_writing_ = 0;
  std::unique_ptr<Script> script_;
  std::unique_ptr<Script> finished_;  // destroyed at the next settle, not inside its own callback
  bool moved_ = false;
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
