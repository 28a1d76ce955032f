// What --salvage does with the segments of one Topic (D-42): decided from a full scan of each, in the order of their names.
//
//   a defect behind some messages   the file is cut at the bad record; what is cut stands beside it, named NAME.salvage-<offset>
//   a defect before any message,    the file is set aside, named NAME.salvage; the last file is cut to nothing instead
//                                   (a name that an earlier run has used gets .2, .3 and so on behind it)
//   or positions or indexes that
//   were there before
//   record indexes that are then    the file before gets a Noop record for each: readers want indexes without a gap, and messages
//   missing between two files       behind the damage stay readable. Positions may be missing between two files
//
//  I1 Messages are only lost behind the first bad record of a file, up to the next file.
//  I2 A lost position is not used again: behind a cut last file the manifest is raised past everything that can have stood there.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/storage/script.h"
#include "core/storage/types.h"

namespace rq::storage {

// One file as the scan found it.
struct ScannedSegment {
  LogIndex base = 0;
  std::uint64_t bytes = 0;       // of the file
  std::uint64_t good_bytes = 0;  // up to the first bad record
  LogIndex first_index = 0;      // 0: no good record
  std::uint64_t records = 0;
  Position first_position = 0, last_position = 0;  // of good messages, 0: none
  std::int64_t last_timestamp_ns = 0;
  std::optional<Fault> fault;  // at good_bytes
  bool sidecar_bad = false;
  bool sidecar_exists = false;
};

struct SegmentRemedy {
  LogIndex base = 0;
  bool set_aside = false;
  std::string saved_as;                 // name of what is set aside or cut
  std::optional<std::uint64_t> cut;     // at this offset
  LogIndex noop_from = 0, noop_to = 0;  // records to add, none when both are 0
  std::int64_t noop_timestamp_ns = 0;
  bool drop_sidecar = false;
};

struct LogRemedy {
  std::vector<SegmentRemedy> segments;  // with something to do only
  Position next_position_min = 0;       // 0: nothing is lost at the end
  std::vector<std::string> lines;       // one for each thing that was lost or repaired, file name first
};

inline constexpr std::uint64_t kNoopRecordsMax = 1u << 22;  // of one gap: 192 MiB of records

// Under what name a damaged file is kept as a whole, or what is cut of it at an offset: one that is not in `taken`, in which
// names are full like `path` or not at all.
std::string salvage_name(const std::string& path, const std::set<std::string>& taken);
std::string salvage_name(const std::string& path, std::uint64_t offset, const std::set<std::string>& taken);

// `files` in the order of their bases; the last one is active. `taken` are the names beside them.
LogRemedy plan_log_remedy(const std::vector<ScannedSegment>& files, const std::set<std::string>& taken);

// Copies of what is to be cut must be durable before. `segments_dir` is synced at the end.
void add_log_steps(Script& script, const std::string& segments_dir, const LogRemedy& remedy);

}  // namespace rq::storage
