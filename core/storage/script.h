// A sequence of disk steps, run one after the other, that ends at the first failure: the update procedures U1 to U10 of page 20
// section 1.2 are scripts. All steps are known before the start.
//
//  I1 Steps take effect strictly in order. What is done to a file that the script opened is submitted in one go, since the port
//     keeps the order of calls on one handle (core/io/ports.h I4) and makes one job of them; every other step waits for the one
//     before it.
//  I2 After a failure no further step has an effect, except that files which the script opened are closed: after a failed append
//     no barrier of that handle succeeds.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/ports.h"
#include "core/storage/types.h"

namespace rq::storage {

class Script;

// Content of a file that is made piece by piece while a script runs, so that a large file needs little memory.
class ScriptContent {
 public:
  virtual ~ScriptContent() = default;
  // The next bytes and where in the file they stand; pieces may come in any order. False: that was all.
  virtual bool next(std::uint64_t& at, std::string& piece) = 0;
};

// Scripts that found no file handle (EMFILE): not a storage fault, they go on when asked again a moment later.
class ScriptRetries {
 public:
  static constexpr std::int64_t kAfterNs = 5 * kMillisecond;
  bool empty() const { return waiting_.empty(); }
  void add(Script& script) { waiting_.push_back(&script); }
  void run();
  // A script that is destroyed while it waits, with its process.
  void forget(Script& script) { std::erase(waiting_, &script); }

 private:
  std::vector<Script*> waiting_;
};

class Script {
 public:
  // `done` runs at depth 0 of a turn, or never if the script is destroyed before start(). Must not be destroyed while running().
  using Done = void (*)(void* self, Script& script);
  // Without `retries` a lack of file handles is a failure.
  Script(io::Host& host, void* self, Done done, ScriptRetries* retries = nullptr);
  ~Script();
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  // --- steps
  void make_dir(std::string path);
  void sync_dir(std::string path);
  void unlink(std::string path);                             // a missing file is fine
  void remove_dir(std::string path);                         // missing is fine; with a stranger's directory in it, it stays
  void remove_files(std::string dir);                        // every file in it; a missing directory is fine
  void replace_file(std::string path, std::string content);  // U1: temporary, barrier, rename, directory sync
  void replace_file(std::string path, std::unique_ptr<ScriptContent> content);
  void write_new(std::string path, std::string content);  // created or truncated, barrier; no directory sync
  void create_new(std::string path);              // empty; a name that is taken is a failure (Errc::exists); no directory sync
  void rename(std::string from, std::string to);  // no directory sync
  void truncate(std::string path, std::uint64_t bytes);                  // and barrier
  void append_to(std::string path, std::string content);                 // and barrier
  void barrier(io::FileId file);                                         // full, on a handle of somebody else
  void rewrite(io::FileId file, std::uint64_t at, std::string content);  // in place, then barrier
  // As write_new(), in two parts: the file is created, which may take as long as a barrier, and a hold() stands before the
  // content, which is supplied then.
  void write_new_later(std::string path);
  // What was added before the n-th of these runs first, the rest after release(n).
  void hold();

  bool empty() const { return steps_.empty(); }
  void start();  // an empty script completes in the next turn as well
  // `told` runs whenever the script stops at a hold().
  void when_held(Done told) { when_held_ = told; }
  // Lets a started script go past its first `holds` holds, when it gets there or now. Further calls do nothing.
  void release(std::size_t holds);
  void supply(std::string content);    // for write_new_later(), while its hold stands
  bool held() const { return held_; }  // at a hold()
  bool running() const { return running_; }
  bool failed() const { return static_cast<bool>(error_); }
  const io::Error& error() const { return error_; }
  Fault fault() const;  // path and reason of the failed step

 private:
  friend class ScriptRetries;
  enum class Kind : std::uint8_t {
    make_dir,
    sync_dir,
    unlink,
    remove_dir,
    list,
    open_create,
    open_new,
    open_rewrite,
    open_append,
    append,
    truncate,
    barrier_own,
    barrier_other,
    rewrite,
    pieces,
    close,
    rename,
    hold,
    nothing,
  };
  struct Step {
    Kind kind;
    std::string path, other;  // other: rename target, content
    std::uint64_t number = 0;
  };
  void add(Kind kind, std::string path, std::string other = {}, std::uint64_t number = 0);
  void next();
  void run(io::Op& op, const Step& step);
  void run_on_own_file();
  void on_done(io::Op& op);
  void on_success(const io::Op& op, std::size_t at);
  void fail(std::size_t at, const io::Error& error);

  io::Host& host_;
  void* self_;
  Done done_;
  ScriptRetries* retries_;
  static constexpr std::size_t kOpsMax = 3;  // append or truncate, barrier, close
  std::array<io::Op, kOpsMax> ops_;          // each with the index of its step as tag
  std::size_t in_flight_ = 0;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<ScriptContent>> contents_;
  std::string piece_;
  std::size_t at_ = 0;                 // the first step that was not submitted yet, or that is on its way alone
  io::FileId own_ = io::FileId::none;  // opened by the current composite step
  std::vector<io::DirEntry> entries_;
  io::Error error_{};
  std::size_t failed_at_ = 0;
  bool running_ = false;
  Done when_held_ = nullptr;
  bool held_ = false;
  std::size_t holds_ = 0;     // that it came to
  std::size_t released_ = 0;  // that are open
};

// Text for a Fault: "<call>: <reason>", with errno where there is one.
std::string describe(const io::Error& error);

}  // namespace rq::storage
