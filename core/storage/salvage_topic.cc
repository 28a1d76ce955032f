#include "core/storage/salvage_topic.h"

#include <fmt/format.h>

#include "core/base/hex.h"
#include "core/storage/checkpoint.h"
#include "core/storage/names.h"
#include "core/storage/paths.h"

namespace rq::storage {
namespace {

constexpr std::string_view kCheckpointSuffix = ".checkpoint";

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

TopicSalvage::TopicSalvage(std::string dir) : dir_(std::move(dir)) {}

bool TopicSalvage::list(DiskCall call, State state, const std::string& dir) {
  state_ = state;
  entries_.clear();
  call.disk.list(call.op, dir, entries_);
  return false;
}

void TopicSalvage::note_taken(const std::string& dir) {
  for (const io::DirEntry& entry : entries_)
    if (entry.name.find(".salvage") != std::string::npos) taken_.insert(dir + "/" + entry.name);
}

bool TopicSalvage::poll(DiskCall call) {
  switch (state_) {
    case State::start:
      return list(call, State::list_topic, dir_);
    case State::list_topic: {
      note_taken(dir_);
      bool manifest = false;
      for (const io::DirEntry& entry : entries_) manifest = manifest || entry.name == "manifest";
      if (!manifest) return true;  // remains of a deletion or of an unfinished creation
      state_ = State::manifest;
      file_.begin(dir_ + "/manifest", kJsonBytesMax);
      [[fallthrough]];
    }
    case State::manifest:
      if (!file_.poll(call)) return false;
      if (take_manifest()) return true;
      return list(call, State::list_channels, dir_ + "/channels");
    case State::list_channels:
      take_channels();
      state_ = State::channel;
      if (!stems_.empty()) load_.begin(dir_ + "/channels", stems_[0]);
      [[fallthrough]];
    case State::channel:
      while (channel_ < stems_.size()) {
        if (!load_.poll(call)) return false;
        take_channel();
        if (++channel_ < stems_.size()) load_.begin(dir_ + "/channels", stems_[channel_]);
      }
      return list(call, State::list_segments, dir_ + "/segments");
    case State::list_segments:
      take_segments();
      [[fallthrough]];
    case State::scan:
    case State::sidecar:
      return next_segment(call);
    case State::end:
      return true;
  }
  return true;
}

// True when the Topic is to be left alone: it is marked deleted.
bool TopicSalvage::take_manifest() {
  const std::optional<std::string> name = from_hex(last_part(dir_));
  std::string defect;
  if (file_.result() == FileRead::Result::ok) {
    Decoded<Manifest> decoded = decode_manifest(bytes_of(file_.content()));
    if (decoded) {
      manifest_ = std::move(*decoded);
      if (manifest_->deleted) return true;
      if (!name || manifest_->name != *name) defect = "names another Topic than its directory";
    } else {
      defect = decoded.error();
    }
  } else {
    defect = file_.result() == FileRead::Result::too_large ? "above 64 MiB" : describe(file_.error());
  }
  if (defect.empty()) return false;
  if (!name || !valid_name(*name)) {
    complaints_.push_back("manifest: " + defect + "; the directory's name is no Topic's: cannot be repaired");
    return true;
  }
  manifest_ = Manifest{};
  manifest_->name = *name;
  replace_manifest_ = true;
  copies_.push_back({dir_ + "/manifest", 0, salvage_name(dir_ + "/manifest", taken_)});
  lines_.push_back("manifest: replaced, the old one is in " + last_part(copies_.back().to) + ": " + defect +
                   "; lost: pause, delivery policy, and what only it knew of positions and of the unrouted boundary");
  return false;
}

void TopicSalvage::take_channels() {
  note_taken(dir_ + "/channels");
  for (const io::DirEntry& entry : entries_)
    if (entry.name.ends_with(kCheckpointSuffix))
      stems_.push_back(entry.name.substr(0, entry.name.size() - kCheckpointSuffix.size()));
}

void TopicSalvage::take_channel() {
  const std::optional<Fault>& fault = load_.fault();
  if (!fault) return;
  const std::string name = "channels/" + last_part(fault->file);
  if (load_.unreadable()) {
    complaints_.push_back(name + ": cannot be read: " + fault->what + ": left alone");
    return;
  }
  if (fault->file.ends_with(".wal") && fault->offset) {
    wal_cuts_.push_back({fault->file, *fault->offset});
    copies_.push_back({fault->file, *fault->offset, salvage_name(fault->file, *fault->offset, taken_)});
    lines_.push_back(
        fmt::format("{}: cut at offset {}: {}; what was finished or requeued behind it is delivered again; what was cut "
                    "is in {}",
                    name, *fault->offset, fault->what, last_part(copies_.back().to)));
    return;
  }
  const std::optional<std::string> channel = from_hex(stems_[channel_]);
  if (!channel || !valid_name(*channel)) {
    checkpoints_aside_.push_back(fault->file);
    lines_.push_back(name + ": set aside: " + fault->what + "; its name is no Channel's");
    return;
  }
  ChannelImage fresh;
  fresh.name = *channel;
  new_checkpoints_[fault->file] = encode_checkpoint(fresh);
  copies_.push_back({fault->file, 0, salvage_name(fault->file, taken_)});
  lines_.push_back(
      fmt::format("{}: replaced, the old one is in {}: {}; Channel {} gets every stored message again but for what its "
                  "WAL says; lost: pause, requeue targets, attempts, counters",
                  name, last_part(copies_.back().to), fault->what, *channel));
}

void TopicSalvage::take_segments() {
  note_taken(dir_ + "/segments");
  for (const io::DirEntry& entry : entries_) {
    taken_segments_.insert(entry.name);
    LogIndex base = 0;
    switch (parse_segment_name(entry.name, base)) {
      case SegmentName::segment:
        segments_.emplace_back();
        segments_.back().base = base;
        segments_.back().bytes = entry.bytes;
        break;
      case SegmentName::malformed:
        segments_aside_.push_back(dir_ + "/segments/" + entry.name);
        lines_.push_back("segments/" + entry.name + ": set aside: a segment's name has exactly 20 digits below 2^64");
        break;
      case SegmentName::other:
        if (const auto sidecar = parse_sidecar_name(entry.name)) sidecars_[*sidecar] = entry.bytes;
        break;
    }
  }
  for (ScannedSegment& segment : segments_) segment.sidecar_exists = sidecars_.contains(segment.base);
}

bool TopicSalvage::next_segment(DiskCall call) {
  for (;;) {
    if (state_ == State::scan) {
      if (!scan_.poll(call)) return false;
      take_scan();
      const ScannedSegment& segment = segments_[segment_];
      if (segment.fault || segment_ + 1 == segments_.size() || !segment.sidecar_exists) {
        ++segment_;
        state_ = State::list_segments;
        continue;
      }
      state_ = State::sidecar;
      sidecar_.begin(dir_ + "/segments/" + sidecar_file_name(segment.base), sidecars_[segment.base], segment.bytes, segment.base,
                     nullptr);
    }
    if (state_ == State::sidecar) {
      if (!sidecar_.poll(call)) return false;
      segments_[segment_].sidecar_bad = sidecar_.defect() != nullptr || !(sidecar_.info() == scan_.info());
      ++segment_;
      state_ = State::list_segments;
      continue;
    }
    if (segment_ == segments_.size()) {
      decide();
      state_ = State::end;
      return true;
    }
    const ScannedSegment& segment = segments_[segment_];
    pending_first_ = 0;
    state_ = State::scan;
    scan_.begin(dir_ + "/segments/" + segment_file_name(segment.base), segment.bytes, segment.base,
                segment_ + 1 == segments_.size(), this);
  }
}

void TopicSalvage::on_message(const MessageMeta& message) {
  if (pending_first_ == 0) pending_first_ = message.position;
  pending_last_ = message.position;
  pending_timestamp_ns_ = message.timestamp_ns;
}

// The record is complete and right: what it held counts.
void TopicSalvage::on_record(const RecordIndex& record) {
  ScannedSegment& segment = segments_[segment_];
  if (segment.records++ == 0) segment.first_index = record.index;
  segment.good_bytes = record.offset + record.encoded_bytes;
  if (pending_first_ == 0) return;
  if (segment.first_position == 0) segment.first_position = pending_first_;
  segment.last_position = pending_last_;
  segment.last_timestamp_ns = pending_timestamp_ns_;
  pending_first_ = 0;
}

void TopicSalvage::take_scan() {
  if (scan_.fault()) segments_[segment_].fault = scan_.fault();
}

void TopicSalvage::decide() {
  log_ = plan_log_remedy(segments_, taken_segments_);
  for (const std::string& line : log_.lines) lines_.push_back("segments/" + line);
  for (const SegmentRemedy& remedy : log_.segments) {
    if (!remedy.cut) continue;
    const std::string path = dir_ + "/segments/" + segment_file_name(remedy.base);
    copies_.push_back({path, *remedy.cut, dir_ + "/segments/" + remedy.saved_as});
  }
  if (manifest_->next_position < log_.next_position_min) {
    manifest_->next_position = log_.next_position_min;
    replace_manifest_ = true;
  }
}

void TopicSalvage::add_steps(Script& script) const {
  const std::string segments = dir_ + "/segments", channels = dir_ + "/channels", manifest = dir_ + "/manifest";
  for (const Copy& copy : copies_) script.sync_dir(parent_of(copy.to));
  if (replace_manifest_) script.replace_file(manifest, encode_manifest(*manifest_));
  for (const WalCut& cut : wal_cuts_) script.truncate(cut.path, cut.bytes);
  for (const std::string& path : checkpoints_aside_) script.rename(path, salvage_name(path, taken_));
  for (const auto& [path, content] : new_checkpoints_) script.replace_file(path, content);
  if (!checkpoints_aside_.empty()) script.sync_dir(channels);
  for (const std::string& path : segments_aside_) script.rename(path, salvage_name(path, taken_));
  if (!segments_aside_.empty()) script.sync_dir(segments);
  add_log_steps(script, segments, log_);
}

}  // namespace rq::storage
