// Carries out what a TopicPlan wants (core/storage/topic_plan.h), but for the ends of the logs, which TailSync has made durable
// before. Every step can be interrupted: the next opening finds the same plan, or what is left of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/script.h"
#include "core/storage/segment_scan.h"
#include "core/storage/sidecar.h"
#include "core/storage/topic_plan.h"

namespace rq::storage {

// False when the Topic is as it should be.
bool needs_repair(const TopicPlan& plan);
// One line for each change, for reports and the log. `what` is relative to the Topic's directory.
struct RepairLine {
  std::string what;
  std::string why;
};
std::vector<RepairLine> repair_lines(const TopicPlan& plan);

class TopicRepair final : private SegmentVisitor {
 public:
  using Done = void (*)(void* self);
  // `sync_dirs`: also makes the Topic's directories durable, after an unclean stop (D-41).
  TopicRepair(io::Host& host, const TopicPlan& plan, bool sync_dirs, void* self, Done done);

  void start();                                                 // `done` runs at depth 0 of a later turn
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path

 private:
  enum class Stage : std::uint8_t { segments, create_sidecar, write_sidecar, end_sidecar, rest };
  enum class Write : std::uint8_t { open, piece, barrier, close };
  static void on_script(void* self, Script& script);
  void on_scan(io::Op& op);
  void on_write(io::Op& op);
  void write_more();
  void fail(std::string path, std::optional<std::uint64_t> offset, std::string what);
  void next();
  void run(void (TopicRepair::*add)(Script&));
  void add_segments(Script& script);
  void add_new_sidecar(Script& script);
  void add_sidecar_rename(Script& script);
  const SegmentInfo& segment() const;
  std::string sidecar_path() const;
  void add_rest(Script& script);
  void on_record(const RecordIndex& record) override;
  void on_message(const MessageMeta& message) override;

  io::Host& host_;
  const TopicPlan& plan_;
  bool sync_dirs_;
  void* self_;
  Done done_;
  io::Op scan_op_, write_op_;
  Stage stage_ = Stage::segments;
  std::size_t sidecar_ = 0;
  SegmentScan scan_;
  bool scanned_ = false, has_header_ = false;
  std::optional<SidecarPieces> pieces_;
  std::string piece_;
  io::FileId file_ = io::FileId::none;
  Write write_ = Write::open;
  std::unique_ptr<Script> script_;
  std::unique_ptr<Script> finished_;  // a script must not go away inside its own callback
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
