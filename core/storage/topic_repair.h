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
  TopicRepair(io::Host& host, const TopicPlan& plan, void* self, Done done);

  void start();                                                 // `done` runs at depth 0 of a later turn
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path

 private:
  enum class Stage : std::uint8_t { segments, sidecars, rest };
  static void on_script(void* self, Script& script);
  void on_op(io::Op& op);
  void next();
  void run(void (TopicRepair::*add)(Script&));
  void add_segments(Script& script);
  void add_sidecar(Script& script);
  void add_rest(Script& script);
  void on_record(const RecordIndex& record) override;
  void on_message(const MessageMeta& message) override;

  io::Host& host_;
  const TopicPlan& plan_;
  void* self_;
  Done done_;
  io::Op op_;
  Stage stage_ = Stage::segments;
  std::size_t sidecar_ = 0;
  SegmentScan scan_;
  std::unique_ptr<SidecarBuilder> builder_;
  std::unique_ptr<Script> script_;
  std::unique_ptr<Script> finished_;  // a script must not go away inside its own callback
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
