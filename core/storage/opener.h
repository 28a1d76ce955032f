// Opens a data directory (page 20 sections 1.3, 2 and 8; D-41, D-44 to D-46): lock, FORMAT, COMPATIBILITY, broker.meta, every
// Topic with its segments and Channels, self-heal or refusal. An asynchronous machine over io::Disk: it only runs in turns.
//
//  I1 A refused start has changed nothing but what D-46 lists; the Fault names the file and, where there is one, the offset.
//  I2 When it succeeded, everything in the image is durable (D-41), and every leftover of a crash is gone. Only Topic
//     directories without a manifest stay as they are: whoever creates the Topic empties them first (page 20 section 1.3).
#pragma once

#include <memory>
#include <string>

#include "core/io/ports.h"
#include "core/storage/image.h"

namespace rq::storage {

struct OpenOptions {
  std::string data_path;
  std::uint64_t node_id = 1;
  std::uint32_t feature_level = 1;
  std::uint64_t max_topics = 10'000;
  std::int64_t pid = 0;    // written into the lock file
  bool read_only = false;  // --verify: shares the lock, changes nothing, goes on after a Topic's fault
  bool locked = false;     // the caller holds the lock
};

class Opener {
 public:
  Opener(io::Host& host, OpenOptions options);
  ~Opener();

  void start();       // once
  bool done() const;  // true once nothing is in flight any more
  // After done(): the image, or why not. In read-only mode the first fault; all of them are in faults().
  Result<BrokerImage>& result();
  const std::vector<Fault>& faults() const;
  // What was found: in read-only mode also beside faults, without the Topics that have one. Empty once result() was taken from.
  const BrokerImage& image() const;
  // What opening changes, or in read-only mode would change: one line each, file first.
  const std::vector<std::string>& repairs() const;
  io::FileId lock_file() const;  // held until the process ends; none in read-only mode, which lets go of it at its end
  bool in_use() const;           // refused since another process holds the lock: nothing was looked at
  bool was_clean() const;        // the last stop left the clean marker (D-41)

  // Progress, for /v1/health while recovering.
  std::uint64_t topics_done() const;
  std::uint64_t topics_total() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rq::storage
