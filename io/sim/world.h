// The simulated world: one seed, one event queue, virtual time, disks, a network and processes that crash and restart.
// Everything that happens is an event with a (time, random tie-break, sequence) key, so one seed replays event for event.
//
//  A Disk belongs to a machine and survives its processes. A Process runs one io::Shard through one io::Turn; when it
//  is killed its Ops are never delivered, its streams are reset and its files stay as the kernel had them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/io/ports.h"
#include "core/io/turn.h"

namespace rq::sim {

// Rates are per 1024 calls. All zero: a perfect world with small latencies.
struct DiskFaults {
  std::uint32_t sync_fail = 0;  // barrier / sync_dir fails once; the dirty pages become clean without reaching the disk
  std::uint32_t no_space = 0;   // append, create, make_dir, rename: ENOSPC
  std::uint32_t write_io_error =
      0;  // append, rewrite, truncate, and whatever changes a name: EIO; an append may have written a part
  std::uint32_t read_io_error = 0;
  std::uint32_t no_handles = 0;  // open, list, sync_dir: EMFILE
  std::int64_t latency_ns_min = 20'000;
  std::int64_t latency_ns_max = 300'000;
  std::uint32_t stall = 0;  // a call takes stall_ns_max instead
  std::int64_t stall_ns_max = 2 * kSecond;
  // Power loss may leave zeros where an unsynced append was lost and a later one was kept. The right answer to that is a refusal.
  bool hostile = false;
};
struct NetFaults {
  bool fragment = true;          // reads get random pieces, down to one byte
  std::uint32_t reset = 0;       // a write or read resets the connection
  std::uint32_t half_open = 0;   // at close the peer never hears of it
  std::uint32_t refuse = 0;      // connect refused
  std::uint32_t no_handles = 0;  // accept: EMFILE, the connection stays in the backlog
  bool tls_name_needed = false;  // servers refuse clients without a certificate
  std::int64_t latency_ns_min = 5'000;
  std::int64_t latency_ns_max = 200'000;
  std::uint32_t buffer_bytes = 128 * 1024;  // unread and in flight, per direction; a writer waits when it is full
  std::uint32_t backlog = 1024;             // connections that nobody accepted yet, per listener; more are refused
};
struct FaultCounts {
  std::uint64_t kills = 0, power_losses = 0, sync_failures = 0, no_space = 0, io_errors = 0, resets = 0, torn_appends = 0;
  std::uint64_t no_handles = 0, stalls = 0, refused = 0, half_open = 0;
  std::uint64_t lost_extents = 0, cut_extents = 0, lost_names = 0;  // at power losses
  std::uint64_t stale_handles = 0;                                  // calls on closed files and streams; no fault
  std::uint64_t midway_reads = 0;                                   // reads with io::ReadOp::midway; no fault
};

class World;

// One machine's file system, in memory. Rename, create and unlink are durable at the directory's sync; appended bytes at the
// barrier.
class SimDisk {
 public:
  virtual ~SimDisk() = default;
  DiskFaults faults;
  std::uint64_t capacity = 1ull << 40;   // what usage() reports as total; full is ENOSPC
  bool claims_full = false;              // usage() says that nothing is free, whatever is
  std::uint32_t handles_max = 1u << 20;  // open files of one process; more is EMFILE
  // After this every unsynced extent is, file by file, kept, cut or lost, and unsynced names may be gone or back. Process must be
  // dead.
  virtual void power_loss() = 0;
  // Inspection and preparation by tests, immediate and without events. Paths as the process sees them; "data/x" is "/data/x".
  virtual bool exists(std::string_view path) const = 0;
  virtual std::string content(std::string_view path) const = 0;          // as the page cache has it; "" if there is none
  virtual std::string durable_content(std::string_view path) const = 0;  // what a power loss would certainly keep under that name
  virtual void put(std::string_view path, std::string_view content) = 0;  // durable; makes parent directories
  virtual void remove(std::string_view path) = 0;
  virtual std::vector<std::string> files() const = 0;                     // every file path, sorted, from "/"
  virtual void link(std::string_view path, std::string_view target) = 0;  // a symbolic link, durable
  // Bit rot: flips the lowest bit of one byte, in the cache and on the disk. False if the file does not reach there or has writes
  // that are not synced. mend() flips back what lies in that file now, wherever the name leads meanwhile; rotten(): what is left.
  virtual bool rot(std::string_view path, std::uint64_t at) = 0;
  virtual void mend(std::string_view path) = 0;
  // A sector that the device cannot give back: reads that cover the byte fail with EIO until it is written. False if the file
  // does not reach there.
  virtual bool spoil(std::string_view path, std::uint64_t at) = 0;
  virtual std::vector<std::string> rotten() const = 0;
  // Called in the event in which a rename, unlink, truncation, creation, or sync took effect, before its completion is delivered.
  std::function<void()> on_step;
  virtual std::uint64_t used() const = 0;  // bytes, reserved blocks included
  virtual std::uint64_t handles_open() const = 0;
};

// A process: builds its Shard from a Host; the factory runs at start and at every restart.
class Process {
 public:
  using Factory = std::function<std::unique_ptr<io::Shard, void (*)(io::Shard*)>(io::Host&, io::Turn&)>;
  virtual ~Process() = default;
  virtual const std::string& name() const = 0;
  virtual std::string ip() const = 0;             // "10.0.0.N"; a listener on any or on a loopback address is found under it too
  virtual void start() = 0;                       // no-op while running
  virtual void kill() = 0;                        // like SIGKILL, at once; Ops in flight may or may not have taken effect
  virtual void stand_still(std::int64_t ns) = 0;  // like SIGSTOP and SIGCONT: no turn until then, and the world goes on
  virtual bool running() const = 0;
  virtual io::Shard* shard() = 0;  // null unless running
  virtual io::Host* host() = 0;
  virtual io::Turn& turn() = 0;
  virtual void poke() = 0;  // schedule a turn now (after a test called into the shard)
  virtual SimDisk& disk() = 0;
  std::int64_t wall_offset_ns = 0;  // added to the world's wall clock; tests step it
};

struct WorldOptions {
  bool trace = false;  // print every event
  std::int64_t wall_start_ns = 1'800'000'000 * kSecond;
};

class World {
 public:
  explicit World(std::uint64_t seed, WorldOptions options = {});
  ~World();
  World(const World&) = delete;

  std::uint64_t seed() const;
  Random random(std::string_view stream) const;  // independent named stream
  Instant now() const;
  std::uint64_t trace_hash() const;  // over every event so far
  std::uint64_t events() const;
  FaultCounts& counts();
  NetFaults& net();
  void note(std::string_view what);  // adds to the trace (and its hash)

  SimDisk& make_disk(std::string_view machine);
  Process& make_process(std::string_view name, SimDisk& disk, Process::Factory factory);
  // Cuts traffic from one process to another (one direction): what was sent waits, and arrives after heal().
  void partition(std::string_view from, std::string_view to);
  void heal();
  void set_chaos(io::Chaos* chaos);  // given to every Host from then on
  void set_log(std::function<void(std::string_view process, io::Level, std::string_view event, std::string_view fields)> log);
  void at(std::int64_t delay_ns, std::function<void()> action);  // an event of the test itself

  bool step();  // one event; false when none is left
  void run_for(std::int64_t ns);
  // Runs until the condition holds; false when `limit_ns` of virtual time passed first.
  bool run_until(const std::function<bool()>& condition, std::int64_t limit_ns);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rq::sim
