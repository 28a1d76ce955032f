#include "core/storage/topic_repair.h"

#include <algorithm>

#include "core/storage/checkpoint.h"
#include "core/storage/paths.h"
#include "core/storage/recovery.h"

namespace rq::storage {
namespace {

std::string text_of(const std::optional<Position>& position) { return position ? std::to_string(*position) : "none"; }

}  // namespace

bool needs_repair(const TopicPlan& plan) {
  const auto changes = [](const TopicPlan::ChannelRepair& channel) {
    return channel.remove || channel.create_wal || channel.checkpoint;
  };
  return plan.manifest_changes() || plan.create_active || !plan.sidecars.empty() || !plan.leftovers.empty() ||
         !plan.missing_dirs.empty() || std::any_of(plan.channels.begin(), plan.channels.end(), changes);
}

std::vector<RepairLine> repair_lines(const TopicPlan& plan) {
  std::vector<RepairLine> lines;
  if (plan.kind == TopicPlan::Kind::remove) {
    lines.push_back({"", "remove: Topic is marked deleted"});
    return lines;
  }
  const auto below = [&plan](const std::string& path) { return path.substr(plan.dir.size() + 1); };
  for (const std::string& dir : plan.missing_dirs) lines.push_back({below(dir), "create"});
  if (plan.cut_active)
    lines.push_back({"segments/" + segment_file_name(plan.tail_base), "truncate to " + std::to_string(*plan.cut_active)});
  for (const LogIndex base : plan.sidecars) lines.push_back({"segments/" + sidecar_file_name(base), "rewrite"});
  if (plan.create_active) lines.push_back({"segments/" + segment_file_name(plan.image.active.info.base), "create"});
  if (plan.stored.next_position != plan.wanted.next_position)
    lines.push_back({"manifest", "next_position " + std::to_string(plan.stored.next_position) + " -> " +
                                     std::to_string(plan.wanted.next_position)});
  if (plan.stored.unrouted_from != plan.wanted.unrouted_from)
    lines.push_back({"manifest", "unrouted_from_position " + text_of(plan.stored.unrouted_from) + " -> " +
                                     text_of(plan.wanted.unrouted_from)});
  for (const TopicPlan::ChannelRepair& channel : plan.channels) {
    const std::string path = "channels/" + channel.stem;
    if (channel.remove) lines.push_back({path + ".checkpoint", "remove: ephemeral"});
    if (channel.create_wal) lines.push_back({path + ".wal", "create"});
    if (channel.cut_wal) lines.push_back({path + ".wal", "truncate to " + std::to_string(channel.wal_bytes)});
    if (channel.evict) lines.push_back({path + ".wal", "append: expired prefix"});
    if (channel.checkpoint) lines.push_back({path + ".checkpoint", "rewrite: expired prefix"});
  }
  for (const std::string& path : plan.leftovers) lines.push_back({below(path), "remove: leftover"});
  return lines;
}

TopicRepair::TopicRepair(io::Host& host, const TopicPlan& plan, bool sync_dirs, void* self, Done done)
    : host_(host), plan_(plan), sync_dirs_(sync_dirs), self_(self), done_(done) {
  io::bind<&TopicRepair::on_scan>(scan_op_, this);
  io::bind<&TopicRepair::on_write>(write_op_, this);
}

void TopicRepair::start() { run(&TopicRepair::add_segments); }

void TopicRepair::run(void (TopicRepair::*add)(Script&)) {
  script_ = std::make_unique<Script>(host_, this, &TopicRepair::on_script);
  (this->*add)(*script_);
  script_->start();
}

void TopicRepair::fail(std::string path, std::optional<std::uint64_t> offset, std::string what) {
  fault_ = Fault{std::move(path), offset, std::move(what)};
  done_(self_);
}

void TopicRepair::on_script(void* self, Script& script) {
  TopicRepair& repair = *static_cast<TopicRepair*>(self);
  if (script.failed()) repair.fault_ = script.fault();
  repair.finished_ = std::move(repair.script_);
  if (repair.stage_ == Stage::rest || repair.fault_) return repair.done_(repair.self_);
  if (repair.stage_ == Stage::create_sidecar) {
    repair.stage_ = Stage::write_sidecar;
    repair.write_ = Write::open;
    return repair.host_.disk.open(repair.write_op_, temporary_of(repair.sidecar_path()), io::OpenMode::rewrite);
  }
  if (repair.stage_ == Stage::end_sidecar) ++repair.sidecar_;
  repair.next();
}

const SegmentInfo& TopicRepair::segment() const {
  const LogIndex base = plan_.sidecars[sidecar_];
  return *std::lower_bound(plan_.image.sealed.begin(), plan_.image.sealed.end(), base,
                           [](const SegmentInfo& each, LogIndex wanted) { return each.base < wanted; });
}

std::string TopicRepair::sidecar_path() const { return plan_.dir + "/segments/" + sidecar_file_name(plan_.sidecars[sidecar_]); }

// The next sidecar, or what comes after all of them.
void TopicRepair::next() {
  if (sidecar_ == plan_.sidecars.size()) {
    stage_ = Stage::rest;
    return run(&TopicRepair::add_rest);
  }
  stage_ = Stage::create_sidecar;
  const SegmentInfo& info = segment();
  if (sidecar_bytes(info.record_count, info.message_count) > kSidecarBytesMax)
    return fail(sidecar_path(), std::nullopt, "sidecar would be above 512 MiB");
  pieces_.emplace(info.record_count, info.message_count);
  scanned_ = has_header_ = false;
  scan_.begin(plan_.dir + "/segments/" + segment_file_name(info.base), info.bytes, info.base, false, this);
  run(&TopicRepair::add_new_sidecar);
}

void TopicRepair::on_scan(io::Op&) { write_more(); }

void TopicRepair::on_write(io::Op& op) {
  if (op.error) return fail(temporary_of(sidecar_path()), std::nullopt, describe(op.error));
  switch (write_) {
    case Write::open:
      file_ = op.file();
      write_ = Write::piece;
      [[fallthrough]];
    case Write::piece:
      return write_more();
    case Write::barrier:
      write_ = Write::close;
      return host_.disk.close(write_op_, std::exchange(file_, io::FileId::none));
    case Write::close:
      stage_ = Stage::end_sidecar;
      return run(&TopicRepair::add_sidecar_rename);
  }
}

// What the scan found goes to the file before the scan goes on, so that no more than a few pieces are in memory.
void TopicRepair::write_more() {
  std::uint64_t at = 0;
  if (!scanned_ && pieces_->pending_bytes() < SidecarPieces::kPieceBytes) {
    if (!scan_.poll({host_.disk, scan_op_})) return;
    scanned_ = true;
    if (scan_.fault())
      return fail(plan_.dir + "/segments/" + segment_file_name(segment().base), scan_.fault()->offset, scan_.fault()->what);
  }
  if (pieces_->take(at, piece_)) return host_.disk.rewrite(write_op_, file_, at, bytes_of(piece_));
  if (!std::exchange(has_header_, true)) {
    piece_ = pieces_->header(scan_.info().bytes, scan_.info().crc);
    return host_.disk.rewrite(write_op_, file_, 0, bytes_of(piece_));
  }
  write_ = Write::barrier;
  const io::BarrierFile file{file_, io::Durability::full};
  host_.disk.barrier(write_op_, {&file, 1});
}

void TopicRepair::on_record(const RecordIndex& record) { pieces_->add_record(record); }
void TopicRepair::on_message(const MessageMeta& message) { pieces_->add_message(message); }

void TopicRepair::add_segments(Script& script) {
  for (const std::string& dir : plan_.missing_dirs) script.make_dir(dir);
  if (!plan_.missing_dirs.empty()) script.sync_dir(plan_.dir);
  if (!plan_.create_active) return;
  const std::string dir = plan_.dir + "/segments";
  script.write_new(dir + "/" + segment_file_name(plan_.image.active.info.base), {});
  script.sync_dir(dir);
}

void TopicRepair::add_new_sidecar(Script& script) { script.write_new(temporary_of(sidecar_path()), {}); }

void TopicRepair::add_sidecar_rename(Script& script) {
  const std::string path = sidecar_path();
  script.rename(temporary_of(path), path);
  script.sync_dir(parent_of(path));
}

void TopicRepair::add_rest(Script& script) {
  if (plan_.manifest_changes()) script.replace_file(plan_.dir + "/manifest", encode_manifest(plan_.wanted));
  bool channels_changed = false;
  std::size_t at = 0;
  for (const TopicPlan::ChannelRepair& channel : plan_.channels) {
    const std::string path = plan_.dir + "/channels/" + channel.stem;
    channels_changed = channels_changed || channel.remove || channel.create_wal;
    if (channel.remove) {
      script.unlink(path + ".wal");
      script.unlink(path + ".checkpoint");
      continue;
    }
    const ChannelImage& image = plan_.image.channels[at++];
    if (channel.create_wal)
      script.write_new(path + ".wal", channel.evict ? evict_frame(plan_.image.expired_through) : std::string());
    if (channel.checkpoint) {
      script.replace_file(path + ".checkpoint", encode_checkpoint(image));
      script.truncate(path + ".wal", 0);
    }
  }
  if (channels_changed) script.sync_dir(plan_.dir + "/channels");
  if (sync_dirs_)
    for (const char* dir : {"/channels", "/segments", ""}) script.sync_dir(plan_.dir + dir);
  for (const std::string& path : plan_.leftovers) script.unlink(path);
  std::vector<std::string> dirs;
  for (const std::string& path : plan_.leftovers) dirs.push_back(parent_of(path));
  dirs.erase(std::unique(dirs.begin(), dirs.end()), dirs.end());
  for (const std::string& dir : dirs) script.sync_dir(dir);
}

}  // namespace rq::storage
