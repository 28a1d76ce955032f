// Recovers one Topic directory without changing it (page 20 sections 8.2 to 8.4): manifest, Channels, segments, then the rules of
// core/storage/recovery.h. Channels come before segments, so that one pass over the metadata also answers which of their requeue
// targets are residue of an old release (section 8.4 step 6).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/channel_load.h"
#include "core/storage/sidecar_load.h"
#include "core/storage/topic_plan.h"

namespace rq::storage {

class TopicRecovery final : private SegmentVisitor {
 public:
  explicit TopicRecovery(std::string dir);  // the path of a directory below topics/
  bool poll(DiskCall call);

  // After the end.
  TopicPlan& plan() { return plan_; }
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path

 private:
  enum class State : std::uint8_t {
    start,
    list_topic,
    manifest,
    list_segments,
    list_channels,
    channel,
    sidecar,
    scan,
    settle,
  };
  enum class Source : std::uint8_t { unknown, sidecar, scan };
  struct File {
    LogIndex base = 0;
    std::uint64_t bytes = 0;
    Source source = Source::unknown;
    SegmentInfo info;
  };
  struct Candidate {
    Position position;
    std::int64_t until_ms;
    std::size_t channel;          // in image.channels
    std::size_t file = SIZE_MAX;  // whose message has exactly this available-at
  };

  bool fail(std::string path, std::optional<std::uint64_t> offset, std::string what);
  bool list(DiskCall call, State state, const std::string& dir);
  bool take_topic_list();
  bool take_manifest();
  bool take_segment_list();
  bool take_channel_list();
  bool take_channel();
  void add_candidates();
  bool next_segment(DiskCall call);
  void begin_scan(std::size_t file);
  bool take_scan();
  bool join();
  std::optional<Fault> build_log();
  void drop_residue();

  void on_record(const RecordIndex& record) override;
  void on_message(const MessageMeta& message) override;

  State state_ = State::start;
  TopicPlan plan_;
  std::optional<Fault> fault_;
  std::string segments_dir_;
  std::string channels_dir_;
  std::vector<io::DirEntry> entries_;
  io::Error error_;
  FileRead file_;

  std::vector<std::string> stems_;
  std::size_t channel_ = 0;
  ChannelLoad load_;
  std::vector<Candidate> candidates_;
  std::size_t candidate_ = SIZE_MAX;

  std::vector<File> files_;
  std::map<LogIndex, std::uint64_t> sidecar_bytes_;
  std::size_t file_at_ = 0;  // those before it are known
  bool rescanned_ = false;   // sidecars were distrusted once (D-44)
  SidecarLoad sidecar_;
  SegmentScan scan_;
  ActiveSegment active_;
};

}  // namespace rq::storage
