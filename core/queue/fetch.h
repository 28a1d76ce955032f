// A batch of reserved messages whose bodies are read from disk for one consumer (page 30 section 3.4). Neighbours in one file are
// read together: at most 2 MiB a read, over gaps of at most 64 KiB. Nothing is read before the node's byte budget holds room for
// the batch (section 7.3).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/queue/byte_holds.h"
#include "core/queue/shared.h"

namespace rq::queue {

class Fetch {
 public:
  static constexpr std::uint64_t kReadBytesMax = 2ull << 20;
  static constexpr std::uint64_t kGapBytesMax = 64ull << 10;

  struct Item {
    Reservation reservation;
    Slice body;  // already there, or filled by a read
  };

  Fetch(Shared& shared, Topic& topic, ChannelLane& lane, ConsumerId consumer);
  ~Fetch();

  void add(const Reservation& reservation, Slice body);
  std::uint64_t bytes() const { return bytes_; }
  void start();  // asks for the bytes, then reads
  // Consumer or Channel are gone: what still waits for the budget ends at once, reads that run end by themselves.
  void give_up();
  std::uint64_t held_bytes() const { return hold_.granted ? hold_.bytes : 0; }
  // The batch has been handed over: its bytes are the consumer's from now on.
  std::uint64_t pass_on();
  bool complete() const { return started_ && running_ == 0; }

  ChannelLane* lane;    // null once the Channel is gone
  ConsumerId consumer;  // none once the consumer is gone
  std::vector<Item> items;

 private:
  struct Part {
    Fetch* fetch = nullptr;
    std::size_t first = 0, last = 0;  // items
    std::uint64_t at = 0;
    Slice buffer;
    storage::ReadPool::Read read;
  };
  static void on_granted(ByteHolds::Waiter& hold);
  void read();
  static void on_read(storage::ReadPool::Read& read);
  void take_bodies(const Part& part);
  std::string positions_of(const Part& part) const;  // for a fault (D-42a)

  Shared& shared_;
  Topic& topic_;
  ByteHolds::Waiter hold_;
  std::uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;
  std::size_t running_ = 0;
  bool started_ = false;
  Instant since_{};
};

}  // namespace rq::queue
