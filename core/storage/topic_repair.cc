#include "core/storage/topic_repair.h"

#include <algorithm>

#include "core/storage/checkpoint.h"
#include "core/storage/paths.h"
#include "core/storage/recovery.h"

namespace rq::storage {
namespace {

std::string text_of(const std::optional<Position>& position) { return position ? std::to_string(*position) : "none"; }

std::uint64_t segment_bytes(const TopicPlan& plan, LogIndex base) {
  for (const SegmentInfo& segment : plan.image.sealed)
    if (segment.base == base) return segment.bytes;
  return 0;
}

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

TopicRepair::TopicRepair(io::Host& host, const TopicPlan& plan, void* self, Done done)
    : host_(host), plan_(plan), self_(self), done_(done) {
  io::bind<&TopicRepair::on_op>(op_, this);
}

void TopicRepair::start() { run(&TopicRepair::add_segments); }

void TopicRepair::run(void (TopicRepair::*add)(Script&)) {
  script_ = std::make_unique<Script>(host_, this, &TopicRepair::on_script);
  (this->*add)(*script_);
  script_->start();
}

void TopicRepair::on_script(void* self, Script& script) {
  TopicRepair& repair = *static_cast<TopicRepair*>(self);
  if (script.failed()) repair.fault_ = script.fault();
  repair.finished_ = std::move(repair.script_);
  if (repair.stage_ == Stage::rest || repair.fault_) return repair.done_(repair.self_);
  repair.next();
}

// The next sidecar, or what comes after all of them.
void TopicRepair::next() {
  stage_ = Stage::sidecars;
  if (sidecar_ == plan_.sidecars.size()) {
    stage_ = Stage::rest;
    return run(&TopicRepair::add_rest);
  }
  const LogIndex base = plan_.sidecars[sidecar_];
  builder_ = std::make_unique<SidecarBuilder>();
  scan_.begin(plan_.dir + "/segments/" + segment_file_name(base), segment_bytes(plan_, base), base, false, this);
  on_op(op_);
}

void TopicRepair::on_op(io::Op& op) {
  if (!scan_.poll({host_.disk, op})) return;
  const std::string dir = plan_.dir + "/segments/";
  if (scan_.fault()) {
    fault_ = scan_.fault();
    fault_->file = dir + segment_file_name(plan_.sidecars[sidecar_]);
  } else if (builder_->bytes() > kSidecarBytesMax) {
    fault_ = Fault{dir + sidecar_file_name(plan_.sidecars[sidecar_]), std::nullopt, "sidecar would be above 512 MiB"};
  }
  if (fault_) return done_(self_);
  run(&TopicRepair::add_sidecar);
}

void TopicRepair::on_record(const RecordIndex& record) {
  if (builder_->bytes() <= kSidecarBytesMax) builder_->add_record(record);
}
void TopicRepair::on_message(const MessageMeta& message) {
  if (builder_->bytes() <= kSidecarBytesMax) builder_->add_message(message);
}

void TopicRepair::add_segments(Script& script) {
  for (const std::string& dir : plan_.missing_dirs) script.make_dir(dir);
  if (!plan_.missing_dirs.empty()) script.sync_dir(plan_.dir);
  if (!plan_.create_active) return;
  const std::string dir = plan_.dir + "/segments";
  script.write_new(dir + "/" + segment_file_name(plan_.image.active.info.base), {});
  script.sync_dir(dir);
}

void TopicRepair::add_sidecar(Script& script) {
  std::string content;
  content.reserve(builder_->bytes());
  for (const ConstBuf piece : builder_->finish(scan_.info().bytes, scan_.info().crc)) put_bytes(content, piece);
  builder_.reset();
  script.replace_file(plan_.dir + "/segments/" + sidecar_file_name(plan_.sidecars[sidecar_++]), std::move(content));
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
  for (const std::string& path : plan_.leftovers) script.unlink(path);
  std::vector<std::string> dirs;
  for (const std::string& path : plan_.leftovers) dirs.push_back(parent_of(path));
  dirs.erase(std::unique(dirs.begin(), dirs.end()), dirs.end());
  for (const std::string& dir : dirs) script.sync_dir(dir);
}

}  // namespace rq::storage
