// Calls on paths: each is a job of its own, and an open or lock brings a handle.
#include <unistd.h>

#include <utility>

#include "io/real/disk.h"

namespace rq::real {

struct RealDisk::PathJob final : Job {
  PathJob(RealDisk& disk_, PathCall&& call_) : disk(disk_), call(std::move(call_)) {}
  ~PathJob() override {
    if (call.opened.fd >= 0) ::close(call.opened.fd);
  }
  void execute() noexcept override { execute_path(call); }
  void finish() override {
    std::uint64_t value = 0;
    if (call.opened.fd >= 0) {
      value = static_cast<std::uint64_t>(disk.adopt(call.opened));
      call.opened.fd = -1;
    }
    disk.turn_.complete(*call.op, call.error, value);
    delete this;
  }
  RealDisk& disk;
  PathCall call;
};

void RealDisk::call_path(PathCall&& call, Lane lane) {
  io::submit(*call.op);
  PathJob* job = new PathJob(*this, std::move(call));
  job->lane = lane;
  ++counters_.jobs;
  pool_.submit(*job);
}

void RealDisk::open(io::Op& op, std::string_view path, io::OpenMode mode) {
  if (mode != io::OpenMode::read) gate_.arm();
  PathCall call{.kind = PathKind::open, .op = &op, .path = std::string(path), .to = {}, .mode = mode};
  call_path(std::move(call), Lane::quick);
}
void RealDisk::lock(io::Op& op, std::string_view path, io::LockKind kind) {
  const bool exclusive = kind == io::LockKind::exclusive;
  if (exclusive) gate_.arm();
  PathCall call{.kind = PathKind::lock, .op = &op, .path = std::string(path), .to = {}};
  call.mode = exclusive ? io::OpenMode::rewrite : io::OpenMode::read;
  call_path(std::move(call), Lane::quick);
}
void RealDisk::rename(io::Op& op, std::string_view from, std::string_view to) {
  call_path({.kind = PathKind::rename, .op = &op, .path = std::string(from), .to = std::string(to)}, Lane::quick);
}
void RealDisk::unlink(io::Op& op, std::string_view path) {
  call_path({.kind = PathKind::unlink, .op = &op, .path = std::string(path), .to = {}}, Lane::slow);
}
void RealDisk::make_dir(io::Op& op, std::string_view path) {
  call_path({.kind = PathKind::make_dir, .op = &op, .path = std::string(path), .to = {}}, Lane::quick);
}
void RealDisk::remove_dir(io::Op& op, std::string_view path) {
  call_path({.kind = PathKind::remove_dir, .op = &op, .path = std::string(path), .to = {}}, Lane::quick);
}
void RealDisk::stat(io::Op& op, std::string_view path, bool follow, io::Stat& out) {
  PathCall call{.kind = PathKind::stat, .op = &op, .path = std::string(path), .to = {}};
  call.follow = follow;
  call.stat = &out;
  call_path(std::move(call), Lane::quick);
}
void RealDisk::list(io::Op& op, std::string_view dir, std::vector<io::DirEntry>& out) {
  PathCall call{.kind = PathKind::list, .op = &op, .path = std::string(dir), .to = {}};
  call.entries = &out;
  call_path(std::move(call), Lane::quick);
}
void RealDisk::sync_dir(io::Op& op, std::string_view dir) {
  call_path({.kind = PathKind::sync_dir, .op = &op, .path = std::string(dir), .to = {}}, Lane::slow);
}
void RealDisk::usage(io::Op& op, std::string_view path, io::DiskUsage& out) {
  PathCall call{.kind = PathKind::usage, .op = &op, .path = std::string(path), .to = {}};
  call.usage = &out;
  call_path(std::move(call), Lane::quick);
}

}  // namespace rq::real
