// What a worker does with the calls queued on one file: in order, neighbouring appends in one writev.
//
//  I1 After a failed or short append nothing is appended and no barrier succeeds on that handle until it was truncated: bytes
//     behind a torn record must never be acknowledged.
//  I2 After a failed sync the handle stays failed: the kernel has marked the pages clean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/ports.h"
#include "io/real/pool.h"

namespace rq::real {

// One barrier over several files; done when every part is.
struct BarrierCall {
  io::Op* op = nullptr;
  std::uint32_t parts_left = 0;
  bool syncfs = false;
  io::Error error{};
};

enum class CallKind : std::uint8_t { append, read, rewrite, truncate, reserve, sync, close };

struct FileCall {
  FileCall* next = nullptr;
  CallKind kind = CallKind::append;
  io::Op* op = nullptr;            // null for a part of a barrier
  BarrierCall* barrier = nullptr;  // sync
  io::Durability how = io::Durability::data;
  bool sync_here = true;  // false: the barrier ends with one syncfs, this part only reports
  std::uint64_t at = 0;   // read, rewrite: offset; truncate, reserve: bytes
  MutBuf into{};
  std::vector<ConstBuf> pieces;  // append, rewrite
  std::uint64_t bytes = 0;       // of the pieces
  io::Error error{};             // result
  std::uint64_t value = 0;
};

// The worker's side of a handle: touched by the loop only while no job holds the file.
struct FileHandle {
  int fd = -1;
  std::uint64_t end = 0;  // where the next append lands
  io::Error fault{};      // I1, I2
  bool torn = false;      // the fault is an append's and ends with a truncate
};

void execute_calls(FileHandle& file, FileCall* calls) noexcept;

}  // namespace rq::real
