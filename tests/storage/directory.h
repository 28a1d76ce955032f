// Data directories for recovery tests: built on a simulated disk, opened by a process of their own.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/hex.h"
#include "core/storage/manifest.h"
#include "core/storage/opener.h"
#include "core/storage/paths.h"
#include "core/storage/verify.h"
#include "core/storage/wal.h"
#include "io/sim/world.h"
#include "tests/storage/examples.h"

namespace rq::storage::testing {

inline const DataPaths kPaths("/data");

struct Opened {
  std::optional<BrokerImage> image;
  std::vector<Fault> faults;
  std::vector<std::string> repairs;
  bool clean = false;
  std::string report;  // read-only mode
  bool ok() const { return image.has_value(); }
  const TopicImage& topic(std::string_view name) const {
    for (const TopicImage& found : image->topics)
      if (found.name == name) return found;
    RQ_CHECK(false);
  }
};

struct OpenerShard final : io::Shard {
  OpenerShard(io::Host& host, OpenOptions options) : opener(host, std::move(options)) {}
  void expire(Now) override {}
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
  Opener opener;
};

// One machine with a data directory at /data.
class Machine {
 public:
  explicit Machine(std::uint64_t seed = 1) : world(seed), disk(world.make_disk("machine")) {
    options.data_path = kPaths.root();
    options.pid = 4711;
  }

  // Opens the directory in a new process and ends that process.
  Opened open() {
    Opened out;
    sim::Process& process = start();
    Opener& opener = static_cast<OpenerShard*>(process.shard())->opener;
    RQ_CHECK(world.run_until([&] { return opener.done(); }, 1'000'000 * kSecond));
    if (opener.result()) out.image = *opener.result();
    out.faults = opener.faults();
    out.repairs = opener.repairs();
    out.clean = opener.was_clean();
    if (options.read_only) out.report = verify_report(opener).text;
    if (!keep_running) process.kill();
    return out;
  }
  // Begins to open it in a process that is killed after that time.
  void begin(std::int64_t kill_after_ns) {
    sim::Process& process = start();
    world.run_for(kill_after_ns);
    process.kill();
  }
  Opened verify() {
    options.read_only = true;
    Opened out = open();
    options.read_only = false;
    return out;
  }

  void put(const std::string& path, std::string_view content) { disk.put(path, content); }
  std::string content(const std::string& path) { return disk.content(path); }
  // Everything but the lock file, for comparison.
  std::string snapshot() {
    std::string out;
    for (const std::string& path : disk.files())
      if (!path.ends_with(".rustqueue.lock")) out += path + "\n" + disk.content(path) + "\n";
    return out;
  }

  sim::World world;
  sim::SimDisk& disk;
  OpenOptions options;
  bool keep_running = false;

 private:
  sim::Process& start() {
    sim::Process& process = world.make_process("opener" + std::to_string(++opened_), disk, [this](io::Host& host, io::Turn&) {
      auto* shard = new OpenerShard(host, options);
      shard->opener.start();
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(shard, [](io::Shard* s) { delete static_cast<OpenerShard*>(s); });
    });
    process.start();
    return process;
  }

  int opened_ = 0;
};

// A segment file that is being written.
struct Log {
  LogIndex base = 1;
  std::string bytes;
  ActiveSegment segment;
  void add(const BatchFields& fields, const std::vector<std::string>& bodies) {
    const std::uint64_t offset = bytes.size();
    bytes += examples::batch(fields, bodies, offset, &segment.messages);
    segment.records.push_back({fields.index, offset, bytes.size() - offset});
  }
  // One message at `position` with a record of its own.
  void add(LogIndex index, Position position, const std::string& body) {
    add({index, examples::kTime + static_cast<std::int64_t>(index), examples::kFirstId - 1 + position, examples::kTimeMs,
         position},
        {body});
  }
  void add_noop(LogIndex index) {
    RecordHeader header;
    header.kind = RecordKind::noop;
    header.index = index;
    const std::uint64_t offset = bytes.size();
    put_record(bytes, header, {});
    segment.records.push_back({index, offset, bytes.size() - offset});
  }
  std::string sidecar() {
    segment.info.bytes = bytes.size();
    segment.info.crc = crc32c(bytes_of(bytes));
    return encode_sidecar(segment);
  }
};

inline void put_root(Machine& machine) {
  machine.put(kPaths.format(), encode_format());
  machine.put(kPaths.compatibility(), encode_compatibility({}));
  machine.put(kPaths.broker_meta(), encode_broker_meta({1, 1'048'577, 2}));
}
inline void put_manifest(Machine& machine, const Manifest& manifest) {
  machine.put(kPaths.manifest(manifest.name), encode_manifest(manifest));
}
inline Manifest events_manifest(Position next = 4) {
  Manifest manifest;
  manifest.name = "events";
  manifest.next_position = next;
  return manifest;
}
inline ChannelImage workers(Position floor = 0) {
  ChannelImage channel;
  channel.name = "workers";
  channel.ack_floor = floor;
  return channel;
}
inline void put_channel(Machine& machine, const ChannelImage& channel, std::string_view wal = {}) {
  machine.put(kPaths.checkpoint("events", channel.name), encode_checkpoint(channel));
  machine.put(kPaths.wal("events", channel.name), wal);
}
inline std::string frame(const WalCommand& command) {
  std::string out;
  put_wal_frame(out, command);
  return out;
}
inline WalCommand finish(Position position) {
  WalCommand command;
  command.position = position;
  command.id = examples::kFirstId - 1 + position;
  return command;
}

inline const std::string kSegment1 = kPaths.segment("events", 1);
inline const std::string kSegment3 = kPaths.segment("events", 3);
inline const std::string kSidecar1 = kPaths.sidecar("events", 1);
inline const std::string kManifest = kPaths.manifest("events");
inline const std::string kCheckpoint = kPaths.checkpoint("events", "workers");
inline const std::string kWal = kPaths.wal("events", "workers");

// The directory G1 of page 20 section 11.
inline void put_g1(Machine& machine) {
  using namespace examples;
  put_root(machine);
  machine.put(kManifest, R"({"format":7,"name":"events","paused":false,"deleted":false,"next_position":4})");
  machine.put(kSegment1, kEx1 + kEx2);
  machine.put(kSidecar1, kEx4);
  machine.put(kSegment3, "");
  machine.put(kCheckpoint, kEx5);
  machine.put(kWal, frame(finish(1)));
}

// As G1, but EX-1 and EX-2 are in the active segment.
inline void put_active(Machine& machine, std::string_view tail = {}) {
  using namespace examples;
  put_root(machine);
  put_manifest(machine, events_manifest());
  machine.put(kSegment1, kEx1 + kEx2 + std::string(tail));
  put_channel(machine, workers(), frame(finish(1)));
}

// Three segments with two messages each, and an empty active one.
inline void put_three_segments(Machine& machine) {
  put_root(machine);
  put_manifest(machine, events_manifest(7));
  put_channel(machine, workers());
  for (LogIndex first = 1; first < 7; first += 2) {
    Log log;
    log.add(first, first, "a");
    log.add(first + 1, first + 1, "b");
    machine.put(kPaths.segment("events", first), log.bytes);
    machine.put(kPaths.sidecar("events", first), log.sidecar());
  }
  machine.put(kPaths.segment("events", 7), "");
}

// Opening is refused, read-only opening says the same, the Fault names that place, and only the lock file has changed (D-46). A
// configuration that does not fit is not seen by read-only opening: then `offline` is false.
inline void expect_refused(Machine& machine, std::string_view file, std::optional<std::uint64_t> offset = std::nullopt,
                           bool offline = true) {
  const std::string before = machine.snapshot();
  const Opened report = machine.verify();
  EXPECT_EQ(report.ok(), !offline);
  const Opened opened = machine.open();
  ASSERT_FALSE(opened.ok());
  ASSERT_EQ(opened.faults.size(), 1u);
  EXPECT_EQ(opened.faults[0].file, file);
  EXPECT_EQ(opened.faults[0].offset, offset) << opened.faults[0].message();
  if (offline) {
    EXPECT_EQ(report.faults[0].message(), opened.faults[0].message());
  }
  EXPECT_EQ(machine.snapshot(), before);
}

}  // namespace rq::storage::testing
