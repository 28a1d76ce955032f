// Positioned reads of segment and sidecar files behind a bounded cache of read handles (page 30 section 7.2: at most 256 files).
//
//  I1 A Read is owned by its caller and stays alive until done() ran; reads are served in the order of their request per file.
//  I2 At most kHandlesMax files stay open; one that is in use is never closed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "core/io/ports.h"

namespace rq::storage {

class ReadPool {
  struct Handle;

 public:
  static constexpr std::size_t kHandlesMax = 256;

  struct Read {
    std::string path;
    std::uint64_t at = 0;
    MutBuf into;
    void (*done)(Read&) = nullptr;  // at depth 0; error and got are set
    void* self = nullptr;
    io::Error error{};
    std::uint64_t got = 0;  // fewer than asked: the file ends there
    bool busy = false;

   private:
    friend class ReadPool;
    Handle* handle = nullptr;
    ReadPool* pool = nullptr;
    io::Op op;
  };

  explicit ReadPool(io::Host& host);
  ~ReadPool();
  void start(Read& read);
  void forget(const std::string& path);  // the file is about to be removed: close its handle when nothing uses it
  std::size_t open_handles() const { return handles_.size(); }
  bool idle() const { return active_ == 0; }
  std::size_t active() const { return active_; }  // started, not done
  // Reads wait because the system had no file handle (EMFILE): try them again a moment later.
  bool starved() const { return starved_; }
  void retry();

 private:
  static void on_open(io::Op& op) noexcept;
  static void on_read(io::Op& op) noexcept;
  static void on_close(io::Op& op) noexcept;
  void begin(Read& read);
  void finish(Read& read);
  void evict();
  void close(Handle& handle);

  io::Host& host_;
  std::map<std::string, std::unique_ptr<Handle>> handles_;
  std::deque<Read*> deferred_;  // waiting for a handle slot
  std::uint64_t clock_ = 0;
  std::size_t active_ = 0;
  bool starved_ = false;
};

}  // namespace rq::storage
