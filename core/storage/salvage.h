// `rustqueued --salvage PATH` (D-42): makes a data directory that does not open, or whose sealed data is damaged, open again. It
// reads every byte of it, cuts what is behind a bad record, keeps what it cuts beside it (names with ".salvage", which nobody
// reads), and says what was lost. What it cannot repair it leaves alone and says so.
//
//  I1 Nothing is removed or cut before its copy is durable; only sidecars are removed without one, since they can be made again.
//  I2 It may be interrupted at any point and started again.
//  I3 The lock is held throughout, and the mark of a clean stop is gone afterwards: the next start trusts no cache (D-41).
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/storage/file_copy.h"
#include "core/storage/opener.h"
#include "core/storage/paths.h"
#include "core/storage/salvage_topic.h"
#include "core/storage/script.h"

namespace rq::storage {

class Salvage {
 public:
  static constexpr int kLooksMax = 8;  // at one Topic, each behind the repair of what the one before found

  Salvage(io::Host& host, std::string data_path);
  void start();   // once
  void settle();  // in every turn
  bool done() const { return state_ == State::done; }

  // After the end: lines, each ended by a newline; the last one starts with "ok" or "FAILED".
  const std::string& report() const { return report_; }
  bool ok() const { return ok_; }  // the directory opens

 private:
  enum class State : std::uint8_t {
    start,
    root,
    list_root,
    lock,
    unmark,
    unmarked,
    file,
    list_outbox,
    list_topics,
    topic,
    copy,
    script,
    verify,
    done
  };
  enum class RootFile : std::uint8_t { broker_meta, format, compatibility, fences, operations, outbox };

  DiskCall call() { return {host_.disk, op_}; }
  void on_op(io::Op&) { run(); }
  void run();
  bool step();  // false while a call is in flight
  bool give_up(std::string why);
  bool take_root_list();
  void sync_lock();
  void note_taken(const std::string& dir);
  void start_copy();
  bool read_next();
  bool take_file();
  std::string root_defect();
  bool next_topic();
  bool take_topic();
  bool start_script();
  static void on_script(void* self, Script& script);
  bool start_verify();
  void line(const std::string& file, const std::string& what) { report_ += paths_.relative(file) + ": " + what + "\n"; }

  io::Host& host_;
  const DataPaths paths_;
  io::Op op_;
  State state_ = State::start;
  io::FileId lock_ = io::FileId::none;
  io::Stat stat_;
  std::vector<io::DirEntry> entries_;
  std::set<std::string> taken_;  // paths that an earlier run has saved something under

  std::vector<std::pair<RootFile, std::string>> files_;
  std::size_t file_at_ = 0;
  FileRead file_;
  bool meta_good_ = false;

  std::vector<std::string> topics_;
  std::size_t topic_at_ = 0;
  int looks_ = 0;
  std::unique_ptr<TopicSalvage> topic_;
  std::size_t copy_at_ = 0;
  FileCopy copy_;
  std::unique_ptr<Script> script_, finished_;
  State after_script_ = State::done;
  std::unique_ptr<Opener> opener_;

  std::uint64_t repaired_ = 0;
  std::string report_;
  bool ok_ = false;
};

}  // namespace rq::storage
