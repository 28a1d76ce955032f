#include "core/storage/topic_recovery.h"

#include <algorithm>

#include "core/base/hex.h"
#include "core/base/probe.h"
#include "core/storage/paths.h"
#include "core/storage/recovery.h"
#include "core/storage/script.h"

namespace rq::storage {
namespace {

constexpr std::string_view kCheckpointSuffix = ".checkpoint";

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

TopicRecovery::TopicRecovery(std::string dir) : segments_dir_(dir + "/segments"), channels_dir_(dir + "/channels") {
  plan_.dir = std::move(dir);
}

bool TopicRecovery::fail(std::string path, std::optional<std::uint64_t> offset, std::string what) {
  if (!fault_) fault_ = Fault{std::move(path), offset, std::move(what)};
  return true;
}

bool TopicRecovery::list(DiskCall call, State state, const std::string& dir) {
  state_ = state;
  entries_.clear();
  call.disk.list(call.op, dir, entries_);
  return false;
}

// Each step ends in a submitted call (false) or in the end of the recovery (true).
bool TopicRecovery::poll(DiskCall call) {
  switch (state_) {
    case State::start:
      return list(call, State::list_topic, plan_.dir);
    case State::list_topic:
      if (call.op.error) return fail(plan_.dir, std::nullopt, describe(call.op.error));
      if (take_topic_list()) return true;
      state_ = State::manifest;
      file_.begin(plan_.dir + "/manifest", kJsonBytesMax);
      [[fallthrough]];
    case State::manifest:
      if (!file_.poll(call)) return false;
      if (take_manifest()) return true;
      return list(call, State::list_segments, segments_dir_);
    case State::list_segments:
      error_ = call.op.error;
      if (take_segment_list()) return true;
      return list(call, State::list_channels, channels_dir_);
    case State::list_channels:
      error_ = call.op.error;
      if (take_channel_list()) return true;
      if (stems_.empty()) return next_segment(call);
      state_ = State::channel;
      load_.begin(channels_dir_, stems_[0]);
      [[fallthrough]];
    case State::channel:
      while (load_.poll(call)) {
        if (take_channel()) return true;
        if (channel_ == stems_.size()) {
          add_candidates();
          return next_segment(call);
        }
        load_.begin(channels_dir_, stems_[channel_]);
      }
      return false;
    case State::sidecar:
    case State::scan:
      return next_segment(call);
    case State::settle:
      return true;
  }
  return true;
}

bool TopicRecovery::take_topic_list() {
  bool manifest = false, segments = false, channels = false;
  for (const io::DirEntry& entry : entries_) {
    manifest = manifest || entry.name == "manifest";
    segments = segments || entry.name == "segments";
    channels = channels || entry.name == "channels";
    if (entry.name == "manifest.tmp") plan_.leftovers.push_back(plan_.dir + "/" + entry.name);
  }
  if (!segments) plan_.missing_dirs.push_back(segments_dir_);
  if (!channels) plan_.missing_dirs.push_back(channels_dir_);
  if (!manifest) plan_.kind = TopicPlan::Kind::ignore;
  return !manifest;
}

bool TopicRecovery::take_manifest() {
  const std::string path = plan_.dir + "/manifest";
  if (file_.result() == FileRead::Result::too_large) return fail(path, std::nullopt, "manifest above 64 MiB");
  if (file_.result() != FileRead::Result::ok) return fail(path, std::nullopt, describe(file_.error()));
  Decoded<Manifest> manifest = decode_manifest(bytes_of(file_.content()));
  if (!manifest) return fail(path, std::nullopt, "manifest: " + manifest.error());
  if (to_hex(manifest->name) != last_part(plan_.dir))
    return fail(path, std::nullopt, "manifest names another Topic than its directory");
  plan_.stored = std::move(*manifest);
  TopicImage& topic = plan_.image;
  topic.name = plan_.stored.name;
  topic.paused = plan_.stored.paused;
  topic.next_position = std::max<Position>(plan_.stored.next_position, 1);
  topic.unrouted_from = plan_.stored.unrouted_from;
  topic.ttl_discard = plan_.stored.ttl_discard;
  topic.message_ttl_seconds = plan_.stored.message_ttl_seconds;
  topic.expired_through = plan_.stored.expired_through;
  topic.ttl_discarded_messages = plan_.stored.ttl_discarded_messages;
  if (plan_.stored.deleted) plan_.kind = TopicPlan::Kind::remove;
  return plan_.stored.deleted;
}

bool TopicRecovery::take_segment_list() {
  if (error_ && error_.code != io::Errc::not_found) return fail(segments_dir_, std::nullopt, describe(error_));
  for (const io::DirEntry& entry : entries_) {
    const std::string path = segments_dir_ + "/" + entry.name;
    LogIndex base = 0;
    switch (parse_segment_name(entry.name, base)) {
      case SegmentName::malformed:
        return fail(path, std::nullopt, "segment name without exactly 20 digits below 2^64");
      case SegmentName::segment:
        if (entry.kind != io::FileKind::file) return fail(path, std::nullopt, "segment is not a regular file");
        files_.push_back({base, entry.bytes, Source::unknown, {}});
        break;
      case SegmentName::other:
        if (const auto sidecar = parse_sidecar_name(entry.name)) sidecar_bytes_[*sidecar] = entry.bytes;
        if (entry.name.ends_with(".rqidx.tmp")) plan_.leftovers.push_back(path);
        break;
    }
  }
  // A sidecar without its segment is what an interrupted purge leaves.
  const auto below = [](const File& file, LogIndex base) { return file.base < base; };
  for (const auto& [base, bytes] : sidecar_bytes_) {
    const auto file = std::lower_bound(files_.begin(), files_.end(), base, below);
    if (file == files_.end() || file->base != base) plan_.leftovers.push_back(segments_dir_ + "/" + sidecar_file_name(base));
  }
  return false;
}

bool TopicRecovery::take_channel_list() {
  if (error_ && error_.code != io::Errc::not_found) return fail(channels_dir_, std::nullopt, describe(error_));
  for (const io::DirEntry& entry : entries_) {
    if (entry.name.ends_with(kCheckpointSuffix))
      stems_.push_back(entry.name.substr(0, entry.name.size() - kCheckpointSuffix.size()));
    else if (entry.name.ends_with(".checkpoint.tmp"))
      plan_.leftovers.push_back(channels_dir_ + "/" + entry.name);
  }
  return false;
}

bool TopicRecovery::take_channel() {
  if (load_.fault()) {
    fault_ = load_.fault();
    return true;
  }
  ChannelFound& found = load_.found();
  TopicPlan::ChannelRepair repair;
  repair.stem = stems_[channel_++];
  repair.remove = found.ephemeral;
  repair.create_wal = found.wal_missing;
  repair.cut_wal = found.wal_torn;
  repair.wal_bytes = found.image.wal_bytes;
  plan_.channels.push_back(std::move(repair));
  if (found.ephemeral) return false;
  plan_.image.channels.push_back(std::move(found.image));
  if (plan_.image.channels.size() <= kChannelsMax) return false;
  return fail(channels_dir_, std::nullopt, "Topic " + plan_.image.name + " has more than 1024 Channels");
}

void TopicRecovery::add_candidates() {
  for (std::size_t i = 0; i < plan_.image.channels.size(); ++i) {
    const ChannelImage& channel = plan_.image.channels[i];
    for (const auto& [position, until_ms] : channel.requeued_until_ms)
      if (position > channel.ack_floor && !channel.attempts.contains(position))
        candidates_.push_back({position, until_ms, i, SIZE_MAX});
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.position < b.position; });
}

void TopicRecovery::begin_scan(std::size_t file) {
  const bool last = file + 1 == files_.size();
  for (Candidate& candidate : candidates_)
    if (candidate.file == file) candidate.file = SIZE_MAX;
  candidate_ = SIZE_MAX;
  if (last) active_ = ActiveSegment();
  state_ = State::scan;
  scan_.begin(segments_dir_ + "/" + segment_file_name(files_[file].base), files_[file].bytes, files_[file].base, last, this);
}

// Goes through the files that have no summary yet; when all have, joins them.
bool TopicRecovery::next_segment(DiskCall call) {
  for (;;) {
    if (state_ == State::sidecar) {
      if (!sidecar_.poll(call)) return false;
      File& file = files_[file_at_];
      if (sidecar_.defect() == nullptr) {
        file.info = sidecar_.info();
        file.source = Source::sidecar;
        state_ = State::settle;
      } else {
        RQ_SOMETIMES(true, "recovery: a sidecar is defective");
        begin_scan(file_at_);
      }
      continue;
    }
    if (state_ == State::scan) {
      if (!scan_.poll(call)) return false;
      if (take_scan()) return true;
      state_ = State::settle;
      continue;
    }
    const auto unknown = [](const File& file) { return file.source == Source::unknown; };
    const auto from = files_.begin() + static_cast<std::ptrdiff_t>(file_at_);
    file_at_ = static_cast<std::size_t>(std::find_if(from, files_.end(), unknown) - files_.begin());
    if (file_at_ == files_.size()) {
      if (join()) return true;
      continue;  // files are to be scanned again
    }
    const File& file = files_[file_at_];
    const auto sidecar = sidecar_bytes_.find(file.base);
    if (file_at_ + 1 < files_.size() && !rescanned_ && sidecar != sidecar_bytes_.end()) {
      candidate_ = SIZE_MAX;
      state_ = State::sidecar;
      sidecar_.begin(segments_dir_ + "/" + sidecar_file_name(file.base), sidecar->second, file.bytes, file.base, this);
    } else {
      begin_scan(file_at_);
    }
  }
}

bool TopicRecovery::take_scan() {
  File& file = files_[file_at_];
  const bool last = file_at_ + 1 == files_.size();
  if (scan_.fault()) {
    fault_ = scan_.fault();
    fault_->file = segments_dir_ + "/" + segment_file_name(file.base);
    return true;
  }
  const bool same_as_sidecar = rescanned_ && file.info == scan_.info();
  file.info = scan_.info();
  file.source = Source::scan;
  if (!last && !same_as_sidecar) plan_.sidecars.push_back(file.base);
  if (!last) return false;
  RQ_SOMETIMES(scan_.torn(), "recovery: the log has a torn tail");
  if (scan_.torn()) plan_.cut_active = file.info.bytes;
  plan_.tail_base = file.base;
  plan_.tail_bytes = file.info.bytes;
  plan_.tail_records_offset = scan_.last_records_offset();
  active_.info = file.info;
  return false;
}

std::optional<Fault> TopicRecovery::build_log() {
  TopicImage& topic = plan_.image;
  topic.sealed.clear();
  topic.active = ActiveSegment();
  topic.next_index = 1;
  if (files_.empty()) {
    topic.active.info.base = 1;
    plan_.create_active = true;
    return std::nullopt;
  }
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) topic.sealed.push_back(files_[i].info);
  topic.active.info = active_.info;
  if (std::optional<Fault> fault = check_segments(topic, segments_dir_)) return fault;
  if (files_.back().base == UINT64_MAX) return Fault{segments_dir_, std::nullopt, "no segment name is left"};
  topic.next_index = std::max<LogIndex>(1, files_.back().base);
  for (const File& file : files_) {
    if (file.info.record_count == 0) continue;
    const LogIndex last = file.info.first_index + (file.info.record_count - 1);
    if (last == UINT64_MAX) return Fault{segments_dir_, std::nullopt, "no record index is left"};
    topic.next_index = last + 1;
  }
  topic.active = std::move(active_);
  return std::nullopt;
}

// False when files have to be scanned again.
bool TopicRecovery::join() {
  if (std::optional<Fault> fault = build_log()) {
    // A sidecar may be a good one of another segment (D-44): only what the segments themselves say counts against them.
    const auto from_sidecar = [](const File& file) { return file.source == Source::sidecar; };
    if (rescanned_ || std::none_of(files_.begin(), files_.end(), from_sidecar)) {
      fault_ = std::move(fault);
      return true;
    }
    RQ_SOMETIMES(true, "recovery: a sidecar belongs to another segment");
    rescanned_ = true;
    file_at_ = 0;
    for (File& file : files_)
      if (file.source == Source::sidecar) file.source = Source::unknown;
    return false;
  }
  drop_residue();
  fault_ = settle_topic(plan_);
  return true;
}

// Releases up to 0.10.0 kept deadlines of deferred messages that a consumer had looked past among the requeue targets.
void TopicRecovery::drop_residue() {
  for (const Candidate& candidate : candidates_) {
    RQ_SOMETIMES(candidate.file != SIZE_MAX, "recovery: old deferred-scan residue is dropped");
    if (candidate.file != SIZE_MAX) plan_.image.channels[candidate.channel].requeued_until_ms.erase(candidate.position);
  }
}

void TopicRecovery::on_record(const RecordIndex& record) {
  if (file_at_ + 1 == files_.size()) active_.records.push_back(record);
}

void TopicRecovery::on_message(const MessageMeta& message) {
  if (file_at_ + 1 == files_.size()) active_.messages.push_back(message);
  if (candidates_.empty()) return;
  if (candidate_ == SIZE_MAX) {
    const auto below = [](const Candidate& candidate, Position position) { return candidate.position < position; };
    candidate_ = static_cast<std::size_t>(std::lower_bound(candidates_.begin(), candidates_.end(), message.position, below) -
                                          candidates_.begin());
  }
  while (candidate_ < candidates_.size() && candidates_[candidate_].position < message.position) ++candidate_;
  for (; candidate_ < candidates_.size() && candidates_[candidate_].position == message.position; ++candidate_)
    if (candidates_[candidate_].until_ms == message.available_at_ms) candidates_[candidate_].file = file_at_;
}

}  // namespace rq::storage
