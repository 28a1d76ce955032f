// One process' Disk: its handles, and its calls in flight on the machine's disk.
//
//  I1 A call takes effect in one event after a drawn latency, and completes then. Appends, rewrites, truncations and the closing
//     of a file take effect in the order of submission; a barrier after all of them that were submitted before it to its files;
//     everything else in any order.
//  I2 After a failed or short append nothing is appended and no barrier succeeds on that handle until it is truncated or closed;
//     after a failed rewrite or sync, until it is closed.
//  I3 At a kill each call in flight has taken effect, or not, or (append, rewrite) in part; of the writes of one file a prefix.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/sim/completion.h"
#include "io/sim/machine_disk.h"

namespace rq::sim {

class DiskPort final : public io::Disk, public EventTarget {
 public:
  DiskPort(MachineDisk& disk, Completion& done) : disk_(disk), kernel_(disk.kernel), done_(done) {}

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

  void kill();  // see I3; every handle is closed, every Op forgotten
  void set_running(bool running) { running_ = running; }

  void on_event(std::uint32_t kind, std::uint64_t a, std::uint64_t b) override;

 private:
  enum class Kind : std::uint8_t {
    open,
    close,
    read,
    append,
    rewrite,
    truncate,
    barrier,
    rename,
    unlink,
    make_dir,
    remove_dir,
    stat,
    list,
    sync_dir,
    lock,
    reserve,
    usage
  };
  static constexpr std::uint32_t kNone = ~0u;

  struct Handle {
    InodePtr node;  // null: free
    std::uint32_t generation = 1;
    bool closing = false;
    bool torn = false;  // `fault` ends with a truncation
    bool shares_lock = false;
    io::OpenMode mode = io::OpenMode::read;
    io::Error fault{};
    std::uint64_t serial = 0;
    std::int64_t settled_ns = 0;  // when the last call submitted so far is done
  };
  // A call in flight; slots and their buffers are used again.
  struct Call {
    io::Op* op = nullptr;
    Kind kind{};
    io::OpenMode mode{};
    bool follow = false;
    std::uint32_t handle = kNone;
    std::uint32_t earlier = kNone, later = kNone;  // in order of submission
    std::uint64_t sequence = 0;
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;  // append, rewrite: of all pieces
    std::string path, to;
    std::vector<ConstBuf> pieces;
    std::vector<std::uint32_t> files;  // barrier: handles
    MutBuf into;
    void* out = nullptr;
  };
  struct Outcome {
    io::Error error{};
    std::uint64_t value = 0;
  };

  Handle* find(io::FileId id);
  io::FileId id_of(std::uint32_t handle) const;
  io::FileId make_handle(const InodePtr& node, io::OpenMode mode);
  void drop_handle(std::uint32_t index);

  std::uint32_t take_call(Kind kind, io::Op& op);
  void drop_call(std::uint32_t slot);
  Call* file_call(Kind kind, io::Op& op, io::FileId id, const char* name);
  Call* path_call(Kind kind, io::Op& op, std::string_view path);
  std::int64_t draw_latency();
  void schedule(std::uint32_t slot);

  Outcome execute(Call& call);
  Outcome do_open(Call& call);
  Outcome do_read(Call& call);
  Outcome do_append(Call& call, std::uint64_t bytes_max);
  Outcome do_rewrite(Call& call, std::uint64_t bytes_max);
  Outcome do_truncate(Call& call);
  Outcome do_barrier(Call& call);
  Outcome do_rename(Call& call);
  Outcome do_unlink(Call& call);
  Outcome do_make_dir(Call& call);
  Outcome do_remove_dir(Call& call);
  Outcome do_stat(Call& call);
  Outcome do_list(Call& call);
  Outcome do_sync_dir(Call& call);
  Outcome do_reserve(Call& call);
  Outcome do_usage(Call& call);
  bool fault(Random& stream, std::uint32_t rate) { return rate != 0 && stream.chance(rate); }
  io::Error io_error(const char* op);
  io::Error name_error(const char* op, bool takes_space);
  io::Error directory_error(const char* op);

  MachineDisk& disk_;
  Kernel& kernel_;
  Completion& done_;
  bool running_ = false;
  std::vector<Handle> handles_;
  std::vector<std::uint32_t> free_handles_;
  std::uint32_t open_handles_ = 0;
  std::deque<Call> calls_;
  std::vector<std::uint32_t> free_calls_;
  std::uint32_t oldest_ = kNone, newest_ = kNone;
  std::uint64_t epoch_ = 1;  // calls of a killed incarnation are void
};

}  // namespace rq::sim
