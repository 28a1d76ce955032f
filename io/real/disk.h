// The Disk port on POSIX files. System calls run on workers; the loop queues, and copies what the page cache holds by itself
// (I4).
//
//  I1 Calls on one handle run in the order of submission: each handle has a queue, and one job at a time takes all of it. So the
//     appends and the barrier of a turn are one job. A read of a handle without queued writes goes its own way.
//  I2 flush() hands out what a turn has queued; the loop calls it after every turn and after every batch of completions.
//  I3 A closed handle is stale at once (Errc::cancelled, counted); its descriptor is closed behind the calls queued before.
//  I4 The loop does not wait for a device: a small read is tried here with RWF_NOWAIT and goes to a worker when that has not all
//     of it.
//  I5 Small appends to a file that gets them without a barrier, as in the relaxed modes, are written by the loop, beside a
//     running sync of the file, too: their publishers wait for this write alone. A write that stalls sends those of the next
//     while to workers.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/io/turn.h"
#include "io/real/barrier.h"
#include "io/real/file_calls.h"
#include "io/real/path_calls.h"
#include "io/real/pool.h"
#include "io/real/stall_guard.h"

namespace rq::real {

struct DiskOptions {
  BarrierStrategy barrier = BarrierStrategy::automatic;
  std::string data_path;  // for syncfs
};

struct DiskCounters {
  std::uint64_t jobs = 0, reads_here = 0, appends_here = 0, barriers = 0, syncfs_barriers = 0, stale_calls = 0;
};

class RealDisk final : public io::Disk {
 public:
  RealDisk(io::Turn& turn, Pool& pool, DiskOptions options);
  ~RealDisk();

  void open(io::Op&, std::string_view path, io::OpenMode) override;
  void close(io::Op&, io::FileId) override;
  void read(io::Op&, io::FileId, std::uint64_t at, MutBuf) override;
  void append(io::Op&, io::FileId, std::span<const ConstBuf>) override;
  void rewrite(io::Op&, io::FileId, std::uint64_t at, ConstBuf) override;
  void truncate(io::Op&, io::FileId, std::uint64_t bytes) override;
  void barrier(io::Op&, std::span<const io::BarrierFile>) override;
  void rename(io::Op&, std::string_view from, std::string_view to) override;
  void unlink(io::Op&, std::string_view path) override;
  void make_dir(io::Op&, std::string_view path) override;
  void remove_dir(io::Op&, std::string_view path) override;
  void stat(io::Op&, std::string_view path, bool follow, io::Stat& out) override;
  void list(io::Op&, std::string_view dir, std::vector<io::DirEntry>& out) override;
  void sync_dir(io::Op&, std::string_view dir) override;
  void lock(io::Op&, std::string_view path, io::LockKind) override;
  void reserve(io::Op&, io::FileId, std::uint64_t bytes) override;
  void usage(io::Op&, std::string_view path, io::DiskUsage& out) override;

  void flush();
  const DiskCounters& counters() const { return counters_; }

 private:
  struct File {
    FileHandle handle;
    std::uint32_t generation = 1;
    bool open = false;              // callers may use it
    bool busy = false;              // a job holds `handle`
    bool syncing = false;           // a job syncs it and holds no more than the descriptor
    bool writes_awaited = false;    // appends came without a barrier
    bool listed = false;            // in ready_
    std::uint32_t reads_aside = 0;  // reads on their own way; close waits for them
    std::uint64_t dirty_bytes = 0;  // appended since the last barrier was asked for
    FileCall* head = nullptr;
    FileCall** tail = &head;
    BarrierCall* group = nullptr;  // files of one barrier may share a job
  };
  struct FilesJob;
  struct ReadJob;
  struct PathJob;
  struct SyncfsJob;

  File* find(io::FileId id);
  io::FileId id_of(std::uint32_t index) const;
  io::FileId adopt(const FileHandle& handle);
  FileCall& take_call(CallKind kind, io::Op* op);
  void recycle(FileCall& call);
  void queue(std::uint32_t index, FileCall& call);
  void make_ready(std::uint32_t index);
  void call_path(PathCall&& call, Lane lane);
  bool read_cached(int fd, std::uint64_t at, MutBuf into);
  void append_here(std::uint32_t index);
  void finish_calls(std::uint32_t index, FileCall* calls);
  void finish_call(std::uint32_t index, FileCall& call);
  void finish_part(BarrierCall& barrier, io::Error error);
  void stale(io::Op& op, const char* name);
  static std::uint32_t index_of(io::FileId id) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id)) - 1; }

  io::Turn& turn_;
  Pool& pool_;
  SyncfsGate gate_;
  StallGuard stalls_;
  bool tells_cached_ = true;  // the file systems met so far know RWF_NOWAIT
  std::deque<File> files_;    // stable addresses: jobs point into it
  std::vector<std::uint32_t> free_files_;
  std::vector<std::uint32_t> ready_;  // files with queued calls and no job
  FileCall* free_calls_ = nullptr;
  DiskCounters counters_;
};

}  // namespace rq::real
