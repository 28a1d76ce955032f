// The opener's machine. Phases run in the order of the enum; most are one call at a time, three are spread over lanes:
//
//   read    lock, root files, outbox, then every Topic (lanes): nothing has been written but the lock file
//   write   root files, removals, ends of logs (lanes), repairs (lanes), directories, broker.meta
//
// A fault in the first half leaves the directory as it was (D-46).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/format_files.h"
#include "core/storage/opener.h"
#include "core/storage/paths.h"
#include "core/storage/script.h"
#include "core/storage/tail_sync.h"
#include "core/storage/topic_recovery.h"
#include "core/storage/topic_repair.h"
#include "core/storage/tree_removal.h"

namespace rq::storage {

class Opener::Impl {
 public:
  Impl(io::Host& host, OpenOptions options);

  void start();

  io::Host& host_;
  const OpenOptions options_;
  const DataPaths paths_;
  bool done_ = false;
  bool in_use_ = false;
  bool clean_ = false;
  io::FileId lock_ = io::FileId::none;
  std::vector<Fault> faults_;
  std::vector<std::string> repairs_;
  Result<BrokerImage> result_ = BrokerImage();
  BrokerImage partial_;  // read-only, beside faults
  std::uint64_t topics_done_ = 0;
  std::uint64_t topics_total_ = 0;

 private:
  enum class Phase : std::uint8_t {
    make_root,
    lock,
    lock_read,
    lock_release,
    lock_cut,
    lock_write,
    lock_sync,
    format,
    older_formats,
    compatibility,
    broker_meta,
    fences,
    operations,
    list_outbox,
    outbox,
    list_audit,
    list_topics,
    topics,
    root_files,
    parent,
    removals,
    tails,
    topic_repairs,
    finish,
    unlock,
    done,
  };
  struct Lane {
    Impl* impl = nullptr;
    io::Op op;
    bool busy = false;
    bool retired = false;  // there are not enough file handles for so many lanes
    std::size_t plan = 0;
    std::unique_ptr<TopicRecovery> recovery;
    std::unique_ptr<TailSync> tail;
    std::unique_ptr<TopicRepair> repair;
  };

  DiskCall call() { return {host_.disk, op_}; }
  void on_op(io::Op& op);
  void enter(Phase phase);   // starts it
  void resume(Phase phase);  // its call completed
  void refuse(std::string path, std::optional<std::uint64_t> offset, std::string what);
  void refuse(Fault fault);
  // Where a check goes on after a fault in read-only mode; otherwise the end.
  void go_on(Phase phase);
  void end();

  // opener_root.cc
  static std::vector<std::string> with_parents(const std::string& path);  // "/a/b" -> "/a", "/a/b"
  void make_root();
  void sync_parent();
  void take_root();
  void take_lock();
  void read_file(std::string path, std::uint64_t bytes_max);
  void take_format();
  void take_older_format();
  void take_compatibility();
  void take_broker_meta();
  void take_management(bool fences);
  void take_outbox_list();
  void next_outbox();
  void take_outbox();
  void write_root_files();

  // opener_topics.cc
  void take_topic_list();
  void make_lanes(std::size_t count);
  void pump();
  bool give_work(Lane& lane);
  void on_lane(io::Op& op);
  void end_recovery(Lane& lane);
  void retire(Lane& lane);
  void check_topic_count();
  void check_ids();
  void next_removal();
  void make_tails();
  static void on_repair(void* self);
  void add_fault(Fault fault);
  void finish_directory();
  void make_image(BrokerImage& image);

  void run_script();
  static void on_script(void* self, Script& script);

  io::Op op_;
  Phase phase_ = Phase::make_root;
  FileRead file_;
  io::Stat stat_;
  std::string text_;
  std::vector<io::DirEntry> entries_;
  std::vector<std::string> work_;  // root directories, older names or outbox files, one after the other
  std::size_t work_at_ = 0;
  std::vector<std::string> outbox_;
  bool parents_ = false;
  std::vector<std::string> temporaries_;
  bool fresh_ = false;  // no FORMAT yet
  Compatibility compatibility_;
  bool meta_missing_ = false;
  BrokerMeta meta_;
  ManagementFences fences_;
  ManagementOperations operations_;
  std::unique_ptr<Script> script_;
  std::unique_ptr<Script> finished_;

  std::vector<std::string> topic_dirs_;
  std::vector<TopicPlan> plans_;
  std::vector<bool> readable_;  // its plan is complete
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t next_ = 0;  // of the work that the lanes share
  std::deque<LogTail> tails_;
  TreeRemoval removal_;
  bool removing_ = false;
  std::size_t removal_plan_ = 0;
};

}  // namespace rq::storage
