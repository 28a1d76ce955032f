// Append-only logs (active segments, Channel WALs) and the barriers over them. One settle() a turn: one barrier over every log
// that waits for durability (design: the turn, D-16), and with it one append of all that came for the log since its last one.
// Appends go ahead of their barrier only where somebody waits for the write (the relaxed modes) or from 1 MiB on.
//
//  I1 durable <= barrier_started <= appended, per log; all three only grow until reset() or close().
//  I2 A log is in at most one running barrier. Up to kBarriersMax run: another one only when each of those has lasted 2 ms or a
//     set holds more than 8 MiB, which goes alone. So a FIN never waits for somebody's 64 MiB, and barriers stay shared on a
//     slow disk.
//  I3 Once fault() is set nothing is submitted any more and nothing becomes durable.
//  I4 Open write handles stay below `handles_max`, unless more logs are busy: idle clean logs are closed, the longest idle first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/histogram.h"
#include "core/io/ports.h"
#include "core/storage/types.h"

namespace rq::storage {

// Where encoded records are built: bytes appended by reference stay alive through their slices, and neighbours in one chunk
// become one piece of a gathered write.
class Arena {
 public:
  explicit Arena(std::uint32_t chunk_bytes = 64 * 1024) : chunk_bytes_(chunk_bytes) {}
  // Room for `bytes`, to be filled by the caller before the slice is shared. Larger than a chunk: a chunk of its own.
  Slice take(std::uint32_t bytes, std::byte*& at);

 private:
  std::uint32_t chunk_bytes_;
  Slice current_;  // the whole chunk
  std::uint32_t used_ = 0;
};

class Committer {
 public:
  static constexpr std::size_t kBarriersMax = 4;
  static constexpr std::int64_t kNextBarrierAfterNs = 2 * kMillisecond;
  static constexpr std::uint64_t kLargeSetBytes = 8ull << 20;
  static constexpr std::uint64_t kEarlyAppendBytes = 1ull << 20;  // so much is written while its barrier has to wait
  static constexpr std::int64_t kHoldNs = 300 * kMicrosecond;     // measured best for closed-loop publishers; at most 1 ms (D-16)

  using LogId = std::uint32_t;
  static constexpr LogId kNoLog = ~0u;

  enum class Role : std::uint8_t { segment, wal };

  Committer(io::Host& host, std::size_t handles_max);
  ~Committer();

  // A log whose `bytes` are durable already. `owner` and `sub` come back in advances(). No handle is opened before the first
  // append.
  LogId add(std::string path, std::uint64_t bytes, Role role, std::uint64_t owner, std::uint64_t sub);
  // Stops using the log; its handle is closed once nothing is in flight. What is not durable yet will never be reported.
  void close(LogId log);
  void append(LogId log, Slice bytes);  // queued until settle()
  // Everything appended so far is to become durable. A barrier that holds nobody up may start later, so that more comes along; of
  // several wishes the earliest counts.
  void want_barrier(LogId log, Instant not_before = {});
  void report_writes(LogId log);  // advances() also tells when an append has reached the file, before any barrier
  void reset(LogId log);          // the file was truncated to nothing; requires idle()

  std::uint64_t appended(LogId log) const { return logs_[log].appended; }
  std::uint64_t barrier_started(LogId log) const { return logs_[log].covered; }
  std::uint64_t durable(LogId log) const { return logs_[log].durable; }
  std::uint64_t written(LogId log) const { return logs_[log].written; }  // in the file: durable or not, readable
  bool in_barrier(LogId log) const { return logs_[log].in_barrier; }
  bool idle(LogId log) const;  // everything appended is durable, nothing in flight
  bool all_idle() const;
  // None unless open. It stays open while the log is not idle, and for a call that is submitted at once.
  io::FileId handle(LogId log) const { return logs_[log].closing ? io::FileId::none : logs_[log].file; }
  const std::string& path(LogId log) const { return logs_[log].path; }

  // Publish requests that were appended since the last call: they let a held barrier start early (D-16).
  void note_publishers(std::uint32_t arrived) { arrived_ += arrived; }
  // Publishers answered by barriers that completed in this turn: the next barrier may be held for them.
  void note_answered(std::uint32_t answered, Now now);

  void settle(Now now);
  Instant next_deadline() const;

  // Logs whose durable (or, where asked for, written) watermark moved, in the order of completion; the caller clears it.
  struct Advance {
    LogId log;
    std::uint64_t owner;
    std::uint64_t sub;
    Role role;
  };
  std::vector<Advance>& advances() { return advances_; }
  const std::optional<Fault>& fault() const { return fault_; }

  std::uint64_t barriers() const { return barriers_; }
  std::uint64_t appends() const { return appends_; }
  std::uint64_t appended_bytes() const { return appended_bytes_; }
  // By what was in them; one over both kinds stands in both.
  const Histogram& segment_barrier_us() const { return segment_barrier_us_; }
  const Histogram& wal_barrier_us() const { return wal_barrier_us_; }

  void check_invariants() const;

 private:
  struct AppendJob;
  struct BarrierJob;
  struct Log {
    std::string path;
    io::FileId file = io::FileId::none;
    Role role = Role::segment;
    bool used = false, opening = false, closing = false, dirty = false, wants = false, in_barrier = false, retired = false;
    bool reports_writes = false;
    std::uint32_t in_flight = 0;  // appends
    std::uint64_t appended = 0;   // queued and submitted
    std::uint64_t submitted = 0;
    std::uint64_t written = 0;
    std::uint64_t covered = 0;  // by a started or completed barrier
    std::uint64_t durable = 0;
    std::uint64_t wanted = 0;   // highest offset somebody waits for
    Instant not_before;         // of the next barrier, while `wants`
    std::vector<Slice> pieces;  // queued
    std::uint64_t owner = 0;
    std::uint64_t sub = 0;
    bool listed = false;  // among the idle handles
    Log *older = nullptr, *newer = nullptr;
    io::Op handle_op;  // open and close
    Committer* committer = nullptr;
    LogId id = 0;
  };

  void submit_appends();
  bool waits_for_its_barrier(const Log& log) const;
  void open(Log& log);
  void submit(Log& log);
  void start_barriers(Now now);
  void start_barrier(const std::vector<LogId>& logs, bool with_large, Now now);
  Instant last_start() const;  // of the barriers that run
  void evict_handle();
  void close_handle(Log& log);
  void list_if_idle(Log& log);
  void unlist(Log& log);
  void drop_if_done(Log& log);
  void fail(const std::string& path, const io::Error& error);
  static void on_opened(io::Op& op) noexcept;
  static void on_closed(io::Op& op) noexcept;
  static void on_appended(io::Op& op) noexcept;
  static void on_barrier(io::Op& op) noexcept;

  io::Host& host_;
  std::size_t handles_max_;
  std::size_t handles_ = 0;
  std::deque<Log> logs_;
  Log *oldest_ = nullptr,
      *newest_ = nullptr;  // with an idle handle, one that may be closed, in the order in which they became so
  std::vector<LogId> free_;
  std::vector<LogId> dirty_;    // have queued pieces
  std::vector<LogId> waiting_;  // want a barrier
  std::vector<std::unique_ptr<AppendJob>> append_jobs_;
  std::vector<AppendJob*> free_append_jobs_;
  std::vector<std::unique_ptr<BarrierJob>> barrier_jobs_;
  std::size_t running_barriers_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t expected_ = 0;
  Instant hold_until_{};
  Instant now_{};
  bool retry_opens_ = false;
  std::vector<Advance> advances_;
  std::optional<Fault> fault_;
  std::uint64_t barriers_ = 0, appends_ = 0, appended_bytes_ = 0;
  Histogram segment_barrier_us_, wal_barrier_us_;
};

}  // namespace rq::storage
