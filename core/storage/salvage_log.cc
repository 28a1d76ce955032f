#include "core/storage/salvage_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/storage/paths.h"
#include "core/storage/record.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kMessageBytesMin = 21;  // in a batch: item header and one byte
constexpr std::size_t kPieceBytes = 1 << 20;

// Walks the files in order and remembers the last one that stays.
class Planner {
 public:
  Planner(const std::vector<ScannedSegment>& files, const std::set<std::string>& taken) : files_(files), taken_(taken) {}

  LogRemedy plan() {
    for (std::size_t i = 0; i < files_.size(); ++i) take(files_[i], i + 1 == files_.size());
    std::erase_if(remedies_, [](const SegmentRemedy& each) {
      return !each.set_aside && !each.cut && each.noop_from == 0 && !each.drop_sidecar;
    });
    out_.segments = std::move(remedies_);
    return std::move(out_);
  }

 private:
  LogIndex next_index() const { return kept_->first_index + kept_->records; }

  void take(const ScannedSegment& file, bool last) {
    SegmentRemedy remedy;
    remedy.base = file.base;
    const std::string name = segment_file_name(file.base);
    const std::string why = file.fault ? file.fault->what : "";
    if (const std::string unfit = misfit(file, last); !unfit.empty()) {
      remedy.set_aside = true;
      remedy.saved_as = salvage_name(name, taken_);
      out_.lines.push_back(
          fmt::format("{}: set aside as {}: {}{}", name, remedy.saved_as, why.empty() ? unfit : why, positions_lost(file)));
      if (last) raise_next(file);
      remedies_.push_back(remedy);
      return;
    }
    if (file.fault) {
      remedy.cut = file.good_bytes;
      remedy.saved_as = salvage_name(name, file.good_bytes, taken_);
      remedy.drop_sidecar = file.sidecar_exists;
      out_.lines.push_back(fmt::format("{}: cut at offset {} of {}: {}; positions from {} on are lost{}; what was cut is in {}",
                                       name, file.good_bytes, file.bytes, why, next_position(file),
                                       last ? "" : " up to the next file", remedy.saved_as));
      if (last) raise_next(file);
    } else if (file.sidecar_bad) {
      remedy.drop_sidecar = true;
      out_.lines.push_back(sidecar_file_name(file.base) + ": removed, the next start makes it again; nothing is lost");
    }
    if (file.records > 0) fill_gap(file.first_index);
    remedies_.push_back(remedy);
    if (file.records == 0) return;
    kept_ = &file;
    kept_at_ = remedies_.size() - 1;
    last_position_ = std::max(last_position_, file.last_position);
  }

  // Why the file cannot stay where it is; empty when it can.
  std::string misfit(const ScannedSegment& file, bool last) const {
    if (!last && file.first_position == 0) return "no message stands before the damage, or none at all";
    if (kept_ == nullptr || file.records == 0) return "";
    if (file.first_index < next_index()) return fmt::format("record index {} was there before", file.first_index);
    if (file.first_position != 0 && file.first_position <= last_position_)
      return fmt::format("position {} was there before", file.first_position);
    if (file.first_index - next_index() > kNoopRecordsMax)
      return fmt::format("{} records are missing before it, too many to fill", file.first_index - next_index());
    return "";
  }

  void fill_gap(LogIndex first_index) {
    if (kept_ == nullptr || first_index == next_index()) return;
    SegmentRemedy& before = remedies_[kept_at_];
    before.noop_from = next_index();
    before.noop_to = first_index - 1;
    before.noop_timestamp_ns = kept_->last_timestamp_ns;
    before.drop_sidecar = kept_->sidecar_exists;
    out_.lines.push_back(fmt::format("{}: {} empty records added in place of the missing ones, {} to {}",
                                     segment_file_name(kept_->base), first_index - before.noop_from, before.noop_from,
                                     before.noop_to));
  }

  Position next_position(const ScannedSegment& file) const { return std::max(file.last_position, last_position_) + 1; }

  static std::string positions_lost(const ScannedSegment& file) {
    if (file.first_position == 0) return "";
    return fmt::format(" (positions {} to {} are lost)", file.first_position, file.last_position);
  }

  // No more messages than this can have stood behind the damage.
  void raise_next(const ScannedSegment& file) {
    const std::uint64_t rest = file.bytes - (file.fault ? file.good_bytes : file.bytes);
    out_.next_position_min = next_position(file) + rest / kMessageBytesMin;
  }

  const std::vector<ScannedSegment>& files_;
  const std::set<std::string>& taken_;
  LogRemedy out_;
  std::vector<SegmentRemedy> remedies_;
  const ScannedSegment* kept_ = nullptr;  // the last one that stays and has records
  std::size_t kept_at_ = 0;               // its remedy
  Position last_position_ = 0;
};

// An earlier run may have saved something of that name, and may not overwrite it.
std::string free_name(const std::string& name, const std::set<std::string>& taken) {
  std::string free = name;
  for (int number = 2; taken.contains(free); ++number) free = fmt::format("{}.{}", name, number);
  return free;
}

void add_noops(Script& script, const std::string& path, const SegmentRemedy& remedy) {
  std::string content;
  for (LogIndex index = remedy.noop_from; index <= remedy.noop_to; ++index) {
    RecordHeader header;
    header.kind = RecordKind::noop;
    header.index = index;
    header.timestamp_ns = remedy.noop_timestamp_ns;
    put_record(content, header, {});
    if (content.size() < kPieceBytes && index != remedy.noop_to) continue;
    script.append_to(path, std::move(content));
    content.clear();
  }
}

}  // namespace

LogRemedy plan_log_remedy(const std::vector<ScannedSegment>& files, const std::set<std::string>& taken) {
  return Planner(files, taken).plan();
}

std::string salvage_name(const std::string& path, const std::set<std::string>& taken) {
  return free_name(path + ".salvage", taken);
}
std::string salvage_name(const std::string& path, std::uint64_t offset, const std::set<std::string>& taken) {
  return free_name(fmt::format("{}.salvage-{}", path, offset), taken);
}

void add_log_steps(Script& script, const std::string& segments_dir, const LogRemedy& remedy) {
  if (remedy.segments.empty()) return;
  // A sidecar goes before its segment changes, so that no crash leaves one that describes what was there before.
  for (const SegmentRemedy& each : remedy.segments)
    if (each.drop_sidecar || each.set_aside) script.unlink(segments_dir + "/" + sidecar_file_name(each.base));
  script.sync_dir(segments_dir);
  for (const SegmentRemedy& each : remedy.segments) {
    const std::string path = segments_dir + "/" + segment_file_name(each.base);
    if (each.set_aside) script.rename(path, segments_dir + "/" + each.saved_as);
    if (each.cut) script.truncate(path, *each.cut);
    if (each.noop_from != 0) add_noops(script, path, each);
  }
  script.sync_dir(segments_dir);
}

}  // namespace rq::storage
