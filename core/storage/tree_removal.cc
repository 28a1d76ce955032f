#include "core/storage/tree_removal.h"

#include <algorithm>
#include <tuple>

namespace rq::storage {

void TreeRemoval::begin(std::string dir) {
  *this = TreeRemoval();
  path_ = std::move(dir);
}

bool TreeRemoval::open(DiskCall call, std::string path) {
  levels_.emplace_back();
  levels_.back().path = path_ = std::move(path);
  state_ = State::list;
  call.disk.list(call.op, path_, levels_.back().entries);
  return false;
}

bool TreeRemoval::poll(DiskCall call) {
  if (state_ == State::start) return open(call, path_);
  if (call.op.error && call.op.error.code != io::Errc::not_found) {
    error_ = call.op.error;
    error_path_ = path_;
    return true;
  }
  if (state_ == State::list) {
    const auto order = [](const io::DirEntry& entry) {
      return std::make_tuple(entry.kind != io::FileKind::directory, entry.name == "manifest");
    };
    std::vector<io::DirEntry>& entries = levels_.back().entries;
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const io::DirEntry& a, const io::DirEntry& b) { return order(a) < order(b); });
    state_ = State::remove;
  }
  return submit(call);
}

bool TreeRemoval::submit(DiskCall call) {
  if (levels_.empty()) return true;
  Level& level = levels_.back();
  if (level.next == level.entries.size()) {
    path_ = std::move(level.path);
    levels_.pop_back();
    call.disk.remove_dir(call.op, path_);
    return false;
  }
  const io::DirEntry& entry = level.entries[level.next];
  if (entry.name == "manifest" && !level.synced) {
    level.synced = true;
    call.disk.sync_dir(call.op, level.path);
    return false;
  }
  ++level.next;
  if (entry.kind == io::FileKind::directory) return open(call, level.path + "/" + entry.name);
  path_ = level.path + "/" + entry.name;
  call.disk.unlink(call.op, path_);
  return false;
}

}  // namespace rq::storage
