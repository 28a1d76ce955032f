// Any prefix of any write sequence opens, and everything that a barrier covered is there.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <functional>
#include <set>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

// What a machine's disk may hold: bytes behind `durable` may be cut anywhere; a replaced or truncated file may still be the old
// one.
struct ModelFile {
  std::string bytes;
  std::size_t durable = 0;
  bool old_possible = false;
  std::optional<std::string> old;  // none: the name did not exist
};

// Writes a Topic with one Channel as the Broker does (page 20 sections 1.2, 3.5 and 6.3), one disk step at a time.
class Writer {
 public:
  Writer() {
    replace(kPaths.format(), encode_format());
    replace(kPaths.compatibility(), encode_compatibility({}));
    replace(kPaths.broker_meta(), encode_broker_meta({1, 1'048'577, 2}));
    replace(kManifest, encode_manifest(events_manifest(1)));
    for (auto& [path, file] : files) file.old_possible = false;
    create_segment();
    files[kWal];
    replace(kCheckpoint, encode_checkpoint(channel));
    while (!steps.empty()) step();
  }

  void step() {
    if (steps.empty()) return;
    const std::function<void()> action = std::move(steps.front());
    steps.pop_front();
    action();
  }

  void publish(std::size_t messages, std::size_t body_bytes) {
    std::vector<std::string> bodies(messages, std::string(body_bytes, 'b'));
    steps.push_back([this, bodies] {
      if (log.bytes.size() > 400) rotate();
      steps.push_back([this, bodies] {
        const BatchFields fields{next_index++, examples::kTime, examples::kFirstId - 1 + next_position, 0, next_position};
        next_position += bodies.size();
        log.add(fields, bodies);
        files[path()].bytes = log.bytes;
      });
    });
  }
  void sync_log() {
    steps.push_back([this] { barrier(path()); });
  }
  void finish_position(Position position) {
    steps.push_back([this, position] {
      if (position >= next_position || !finished.insert(position).second) return;
      put_wal_frame(files[kWal].bytes, finish(position));
    });
  }
  void sync_wal() {
    steps.push_back([this] {
      barrier(kWal);
      synced_finishes = finished;
    });
  }
  // U9: checkpoint, then an empty WAL.
  void checkpoint() {
    sync_wal();
    steps.push_back([this] {
      const std::set<Position> stored = synced_finishes;
      if (stored != finished) return;  // something came after the barrier
      channel.acknowledged.assign(stored.begin(), stored.end());
      replace(kCheckpoint, encode_checkpoint(channel));
      steps.push_back([this, stored] {
        ModelFile& wal = files[kWal];
        if (stored != finished) return;
        wal.old = wal.bytes;
        wal.old_possible = true;
        wal.bytes.clear();
        wal.durable = 0;
        steps.push_front([this] { files[kWal].old_possible = false; });
      });
    });
  }
  void manifest() {
    steps.push_back([this] { replace(kManifest, encode_manifest(events_manifest(next_position))); });
  }

  std::map<std::string, ModelFile> files;
  std::deque<std::function<void()>> steps;
  Log log;
  LogIndex next_index = 1;
  Position next_position = 1;
  Position durable_position = 0;
  std::set<Position> finished, synced_finishes;
  ChannelImage channel = workers();

 private:
  std::string path() const { return kPaths.segment("events", log.base); }
  void create_segment() {
    log = Log();
    log.base = next_index;
    files[path()].old_possible = true;  // until its directory is synced
    steps.push_front([this] { files[path()].old_possible = false; });
  }
  void rotate() {  // U5
    steps.push_back([this] {
      barrier(path());
      const std::string sidecar = log.sidecar(), sidecar_path = kPaths.sidecar("events", log.base);
      create_segment();
      steps.insert(steps.begin() + 1, [this, sidecar, sidecar_path] { replace(sidecar_path, sidecar); });
    });
  }
  void barrier(const std::string& file) {
    files[file].durable = files[file].bytes.size();
    if (file == path()) durable_position = next_position - 1;
  }
  // U1: the temporary, the rename, the directory.
  void replace(const std::string& file, const std::string& content) {
    files[temporary_of(file)].bytes = content;
    steps.push_front([this, file] { files[file].old_possible = false; });
    steps.push_front([this, file, content] {
      ModelFile& target = files[file];
      target.old = files.contains(file) && target.durable > 0 ? std::optional(target.bytes) : std::nullopt;
      target.old_possible = true;
      target.bytes = content;
      target.durable = content.size();
      files.erase(temporary_of(file));
    });
  }
};

void crash(const Writer& writer, Machine& machine) {
  for (const auto& [path, file] : writer.files) {
    if (file.old_possible && *rc::gen::arbitrary<bool>()) {
      if (file.old) machine.put(path, *file.old);
      continue;
    }
    const auto kept = *rc::gen::inRange<std::size_t>(file.durable, file.bytes.size() + 1);
    machine.put(path, std::string_view(file.bytes).substr(0, kept));
  }
}

bool finished_in(const TopicImage& topic, Position position) {
  const ChannelImage& channel = topic.channels[0];
  return position <= channel.ack_floor || std::binary_search(channel.acknowledged.begin(), channel.acknowledged.end(), position);
}

bool absent_in(const TopicImage& topic, Position position) {
  return std::any_of(topic.absent.begin(), topic.absent.end(),
                     [position](const Range& range) { return range.first <= position && position <= range.last; });
}

std::string digest(const TopicImage& topic) {
  std::string out = std::to_string(topic.next_position) + " " + std::to_string(topic.next_index);
  for (const Range& range : topic.absent) out += " " + std::to_string(range.first) + "-" + std::to_string(range.last);
  for (const ChannelImage& channel : topic.channels) out += encode_checkpoint(channel);
  for (const SegmentInfo& segment : topic.sealed) out += " " + std::to_string(segment.crc);
  return out + " " + std::to_string(topic.active.info.crc);
}

RC_GTEST_PROP(RecoveryProperties, AnyPrefixOpensAndWhatABarrierCoveredIsThere, ()) {
  Writer writer;
  const auto steps = *rc::gen::inRange(0, 120);
  for (int i = 0; i < steps; ++i) {
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
      case 1:
        writer.publish(*rc::gen::inRange<std::size_t>(1, 4), *rc::gen::inRange<std::size_t>(1, 150));
        break;
      case 2:
        writer.sync_log();
        break;
      case 3:
      case 4:
        writer.finish_position(*rc::gen::inRange<Position>(1, 40));
        break;
      case 5:
        writer.sync_wal();
        break;
      case 6:
        if (*rc::gen::inRange(0, 3) == 0) writer.checkpoint();
        break;
      case 7:
        if (*rc::gen::inRange(0, 3) == 0) writer.manifest();
        break;
      default:
        writer.step();
    }
    writer.step();
  }
  Machine machine;
  crash(writer, machine);
  const Opened opened = machine.open();
  if (!opened.ok()) RC_FAIL(opened.faults[0].message());
  const TopicImage& topic = opened.topic("events");
  for (Position position = 1; position <= writer.durable_position; ++position) {
    RC_ASSERT(position < topic.next_position && !absent_in(topic, position));
    if (!writer.finished.contains(position)) RC_ASSERT(!finished_in(topic, position));
  }
  for (const Position position : writer.synced_finishes) {
    RC_ASSERT(position < topic.next_position);  // also of a message that is lost: the position is not used again
    RC_ASSERT(finished_in(topic, position) || absent_in(topic, position));
  }
  // What was found is durable, and finding it again changes nothing.
  const std::string first = digest(topic);
  machine.disk.power_loss();
  const Opened again = machine.open();
  RC_ASSERT(again.ok());
  RC_ASSERT(digest(again.topic("events")) == first);
  RC_ASSERT(again.repairs.empty());
}

// A machine that loses its power while it opens, again and again, ends where an undisturbed one does.
RC_GTEST_PROP(RecoveryProperties, OpeningMayBeInterruptedAtAnyPoint, ()) {
  const auto prepare = [](Machine& machine) {
    put_g1(machine);
    machine.disk.remove(kSidecar1);
    machine.put(kSegment3, examples::kEx1.substr(0, 30));
    Manifest manifest = events_manifest(9);
    manifest.expired_through = 2;
    put_manifest(machine, manifest);
    machine.put(kWal, frame(finish(1)) + "torn");
    machine.put(temporary_of(kManifest), "x");
    Manifest gone = events_manifest();
    gone.name = "gone";
    gone.deleted = true;
    put_manifest(machine, gone);
    machine.put(kPaths.segment("gone", 1), "x");
    Log log;
    log.base = 3;
    log.add(3, 5, "x");
    machine.put(kSegment3, log.bytes + "torn");
  };
  Machine calm;
  prepare(calm);
  const Opened expected = calm.open();
  if (!expected.ok()) RC_FAIL(expected.faults[0].message());

  Machine machine(*rc::gen::arbitrary<std::uint64_t>());
  prepare(machine);
  const auto interruptions = *rc::gen::inRange(1, 4);
  for (int i = 0; i < interruptions; ++i) {
    sim::Process& process = machine.world.make_process("cut" + std::to_string(i), machine.disk, [&](io::Host& host, io::Turn&) {
      auto* shard = new OpenerShard(host, machine.options);
      shard->opener.start();
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(shard, [](io::Shard* s) { delete static_cast<OpenerShard*>(s); });
    });
    process.start();
    machine.world.run_for(*rc::gen::inRange<std::int64_t>(0, 40 * kMillisecond));
    process.kill();
    if (*rc::gen::arbitrary<bool>()) machine.disk.power_loss();
  }
  const Opened opened = machine.open();
  if (!opened.ok()) RC_FAIL(opened.faults[0].message());
  RC_ASSERT(digest(opened.topic("events")) == digest(expected.topic("events")));
  RC_ASSERT(opened.image->topics.size() == 1u);
  RC_ASSERT(!machine.disk.exists(kPaths.manifest("gone")));
  RC_ASSERT(!machine.disk.exists(kPaths.segment("gone", 1)));
}

// Whatever a disk answers, opening ends: with the state as it is, or with a fault that names a file; never with something else.
RC_GTEST_PROP(RecoveryProperties, DiskFaultsEndInAFaultAndChangeNoResult, ()) {
  Machine machine(*rc::gen::arbitrary<std::uint64_t>());
  put_active(machine, "torn");
  put_manifest(machine, events_manifest(9));
  machine.disk.faults.sync_fail = *rc::gen::element(0u, 40u, 200u);
  machine.disk.faults.write_io_error = *rc::gen::element(0u, 40u);
  machine.disk.faults.read_io_error = *rc::gen::element(0u, 40u);
  machine.disk.faults.no_space = *rc::gen::element(0u, 40u);
  for (int i = 0; i < 5; ++i) {
    const Opened opened = machine.open();
    if (!opened.ok()) RC_ASSERT(!opened.faults[0].file.empty());
    if (*rc::gen::arbitrary<bool>()) machine.disk.power_loss();
  }
  machine.disk.faults = {};
  const Opened opened = machine.open();
  if (!opened.ok()) RC_FAIL(opened.faults[0].message());
  RC_ASSERT(opened.topic("events").next_position == 9u);
  RC_ASSERT(opened.topic("events").sealed.size() == 1u);
  RC_ASSERT(opened.topic("events").channels[0].ack_floor == 1u);
}

}  // namespace
}  // namespace rq::storage::testing
