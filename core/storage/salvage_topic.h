// Looks at one Topic directory for --salvage: reads everything, changes nothing, and says what is to be done about what it found.
// The Salvage machine does it and looks again, since one defect may hide another.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/storage/channel_load.h"
#include "core/storage/manifest.h"
#include "core/storage/salvage_log.h"
#include "core/storage/segment_scan.h"
#include "core/storage/sidecar_load.h"

namespace rq::storage {

class TopicSalvage final : private SegmentVisitor {
 public:
  explicit TopicSalvage(std::string dir);  // the path of a directory below topics/
  bool poll(DiskCall call);

  // After the end.
  struct Copy {
    std::string from;
    std::uint64_t at;
    std::string to;
  };
  const std::vector<Copy>& copies() const { return copies_; }       // first, each durable
  void add_steps(Script& script) const;                             // then these
  const std::vector<std::string>& lines() const { return lines_; }  // below the Topic's directory
  bool clean() const { return lines_.empty(); }
  const std::vector<std::string>& complaints() const { return complaints_; }  // what is wrong and stays so

 private:
  enum class State : std::uint8_t { start, list_topic, manifest, list_channels, channel, list_segments, scan, sidecar, end };
  bool list(DiskCall call, State state, const std::string& dir);
  void note_taken(const std::string& dir);
  bool take_manifest();
  void take_channels();
  void take_channel();
  void take_segments();
  bool next_segment(DiskCall call);
  void take_scan();
  void decide();
  void on_record(const RecordIndex& record) override;
  void on_message(const MessageMeta& message) override;

  State state_ = State::start;
  std::string dir_;
  std::vector<io::DirEntry> entries_;
  FileRead file_;
  std::optional<Manifest> manifest_;
  bool replace_manifest_ = false;

  std::vector<std::string> stems_;
  std::size_t channel_ = 0;
  ChannelLoad load_;
  struct WalCut {
    std::string path;
    std::uint64_t bytes;
  };
  std::vector<WalCut> wal_cuts_;
  std::vector<std::string> checkpoints_aside_;
  std::map<std::string, std::string> new_checkpoints_;  // path -> content

  std::vector<ScannedSegment> segments_;
  std::map<LogIndex, std::uint64_t> sidecars_;  // lengths
  std::vector<std::string> segments_aside_;     // with names that nobody reads
  std::size_t segment_ = 0;
  SegmentScan scan_;
  SidecarLoad sidecar_;
  Position pending_first_ = 0, pending_last_ = 0;
  std::int64_t pending_timestamp_ns_ = 0;

  LogRemedy log_;
  std::vector<Copy> copies_;
  std::vector<std::string> lines_, complaints_;
  std::set<std::string> taken_, taken_segments_;  // names that an earlier run has used: paths; in segments/
};

}  // namespace rq::storage
