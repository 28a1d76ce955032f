// What one connection still has to write: frames in order, small ones joined in a buffer, bodies as slices (one copy at most).
// One batch is being written while the next one is staged; the owner submits the writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"
#include "core/nsq/frames.h"
#include "core/queue/engine.h"

namespace rq::broker {

class Output {
 public:
  static constexpr std::uint32_t kCopyBytesMax = 1'024;     // larger bodies are written from their chunk
  static constexpr std::size_t kBuffersMax = 64;            // per write
  static constexpr std::size_t kIdleCapacityBytes = 4'096;  // what an idle connection may keep

  static constexpr WallTime kNoExpiry{std::numeric_limits<std::int64_t>::max()};

  struct Handed {
    queue::MessageId id;
    queue::Token token;
    std::size_t from;  // where its frame begins in its batch
  };
  struct Piece {
    Slice body;  // empty: a range of `bytes`
    std::size_t at = 0, length = 0;
  };
  // What a batch is staged in.
  struct Buffers {
    std::string bytes;
    std::vector<Piece> pieces;
    std::vector<Handed> handed;
  };
  // Grown buffers of batches that were written, for the next ones of any connection, so that a batch of messages is not staged in
  // memory that grows from nothing each time.
  class Spare {
   public:
    static constexpr std::size_t kBuffersMax = 8;
    static constexpr std::size_t kBytesMax = 512 * 1024;  // of each; larger ones are freed

    void keep(Buffers buffers);   // emptied; freed when there are enough
    void lend(Buffers& buffers);  // swapped for empty ones, if there are any
    std::size_t count() const { return free_.size(); }

   private:
    std::vector<Buffers> free_;
  };

  explicit Output(Spare& spare) : spare_(spare) {}

  void frame(nsq::FrameType type, std::string_view payload);
  void heartbeat();
  void message(const queue::Delivery& delivery, Now now);

  bool empty() const { return staged_.total == 0 && writing_.total == 0; }
  bool writing() const { return writing_.total != 0; }
  std::size_t unsent_bytes() const { return staged_.total + writing_.total - done_; }
  std::size_t unsent_answer_bytes() const { return staged_.answer_bytes + writing_.answer_bytes; }
  bool heartbeat_staged() const { return staged_.heartbeat; }
  bool has_messages() const { return !staged_.handed.empty() || !writing_.handed.empty(); }
  // No byte of the messages here may be sent from the earlier of these on (page 30 section 9.3).
  WallTime expires() const { return std::min(staged_.expires, writing_.expires); }
  Instant expires_mono() const { return std::min(staged_.expires_mono, writing_.expires_mono); }
  bool batch_has_messages() const { return !writing_.handed.empty(); }
  bool batch_has_answers() const { return writing_.answer_bytes != 0; }

  // Makes what is staged the batch to write. False when there is nothing, or a batch is not finished.
  bool begin();
  // The unwritten rest of the batch, or its beginning when `out` is short or it is larger than bytes_max; returns how many
  // buffers were filled.
  std::size_t fill(std::span<ConstBuf> out, std::size_t bytes_max = SIZE_MAX);
  // That many bytes were taken. `piece` when at least one whole piece left with them, `batch` when it was the last byte.
  struct Progress {
    bool piece = false, batch = false;
    std::uint64_t body_bytes = 0;  // of the messages in a batch that is done
  };
  Progress advance(std::size_t bytes);

  // The connection is gone: forgets everything; returns the messages of which no byte was ever submitted.
  std::vector<Handed> abandon();

 private:
  struct Batch : Buffers {
    std::size_t total = 0;
    std::size_t answer_bytes = 0;
    std::uint64_t body_bytes = 0;  // of its messages
    bool heartbeat = false;
    WallTime expires = kNoExpiry;
    Instant expires_mono = Instant::never();
    void clear(Spare& spare);
  };
  void joined(std::size_t from);  // bytes behind `from` were appended to staged_.bytes

  Spare& spare_;
  Batch staged_, writing_;
  std::size_t done_ = 0;        // bytes of writing_ taken
  std::size_t submitted_ = 0;   // bytes of writing_ that fill() has given out
  std::size_t piece_ = 0;       // first piece not wholly taken
  std::size_t piece_done_ = 0;  // bytes of it taken
};

}  // namespace rq::broker
