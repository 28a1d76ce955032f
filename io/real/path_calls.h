// Calls that name a path: each is one job of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/io/ports.h"
#include "io/real/barrier.h"
#include "io/real/file_calls.h"

namespace rq::real {

enum class PathKind : std::uint8_t { open, lock, rename, unlink, make_dir, remove_dir, stat, list, sync_dir, usage };

struct PathCall {
  PathKind kind = PathKind::open;
  io::Op* op = nullptr;
  std::string path, to;
  io::OpenMode mode = io::OpenMode::read;
  bool follow = false;
  io::Stat* stat = nullptr;
  std::vector<io::DirEntry>* entries = nullptr;
  io::DiskUsage* usage = nullptr;
  io::Error error{};
  FileHandle opened{};  // open, lock
};

void execute_path(PathCall& call) noexcept;

}  // namespace rq::real
