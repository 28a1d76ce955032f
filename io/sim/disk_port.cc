// Submission, completion and kill; what the calls do is in disk_calls.cc.
#include "io/sim/disk_port.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/io/turn.h"

namespace rq::sim {

// ---- handles

io::FileId DiskPort::id_of(std::uint32_t handle) const {
  return static_cast<io::FileId>((std::uint64_t{handles_[handle].generation} << 32) | (std::uint64_t{handle} + 1));
}

DiskPort::Handle* DiskPort::find(io::FileId id) {
  const std::uint64_t index = (static_cast<std::uint64_t>(id) & 0xffffffffu) - 1;
  if (index >= handles_.size()) return nullptr;
  Handle& handle = handles_[index];
  const bool valid = handle.node != nullptr && !handle.closing && id_of(static_cast<std::uint32_t>(index)) == id;
  return valid ? &handle : nullptr;
}

io::FileId DiskPort::make_handle(const InodePtr& node, io::OpenMode mode) {
  if (free_handles_.empty()) {
    free_handles_.push_back(static_cast<std::uint32_t>(handles_.size()));
    handles_.emplace_back();
  }
  const std::uint32_t index = free_handles_.back();
  free_handles_.pop_back();
  Handle& handle = handles_[index];
  RQ_CHECK(handle.node == nullptr);
  handle.node = node;
  handle.closing = handle.torn = handle.shares_lock = false;
  handle.mode = mode;
  handle.fault = {};
  handle.serial = disk_.next_serial();
  handle.settled_ns = 0;
  ++open_handles_;
  disk_.handle_opened(*node);
  return id_of(index);
}

void DiskPort::drop_handle(std::uint32_t index) {
  Handle& handle = handles_[index];
  RQ_CHECK(handle.node != nullptr);
  if (handle.node->lock_owner == handle.serial) handle.node->lock_owner = 0;
  if (handle.shares_lock) --handle.node->lock_shares;
  disk_.handle_closed(*handle.node);
  handle.node = nullptr;
  ++handle.generation;
  --open_handles_;
  free_handles_.push_back(index);
}

// ---- calls

std::uint32_t DiskPort::take_call(Kind kind, io::Op& op) {
  if (free_calls_.empty()) {
    free_calls_.push_back(static_cast<std::uint32_t>(calls_.size()));
    calls_.emplace_back();
  }
  const std::uint32_t slot = free_calls_.back();
  free_calls_.pop_back();
  Call& call = calls_[slot];
  call.op = &op;
  call.kind = kind;
  call.handle = kNone;
  call.sequence = call.at = call.bytes = 0;
  call.earlier = newest_;
  call.later = kNone;
  (newest_ == kNone ? oldest_ : calls_[newest_].later) = slot;
  newest_ = slot;
  return slot;
}

void DiskPort::drop_call(std::uint32_t slot) {
  Call& call = calls_[slot];
  (call.earlier == kNone ? oldest_ : calls_[call.earlier].later) = call.later;
  (call.later == kNone ? newest_ : calls_[call.later].earlier) = call.earlier;
  call.op = nullptr;
  call.path.clear();
  call.pieces.clear();
  call.files.clear();
  free_calls_.push_back(slot);
}

std::int64_t DiskPort::draw_latency() {
  const DiskFaults& faults = disk_.faults;
  const std::int64_t latency = draw_ns(disk_.streams.latency, faults.latency_ns_min, faults.latency_ns_max);
  if (!fault(disk_.streams.stall, faults.stall)) return latency;
  ++kernel_.counts.stalls;
  return std::max(latency, faults.stall_ns_max);
}

// Picks the instant of the effect (I1). The newest call is the one being submitted.
void DiskPort::schedule(std::uint32_t slot) {
  Call& call = calls_[slot];
  std::int64_t at = kernel_.now.ns + draw_latency();
  const auto after = [&](std::int64_t other) { at = std::max(at, other + 1); };
  switch (call.kind) {
    case Kind::append:
    case Kind::rewrite:
    case Kind::truncate:
    case Kind::reserve: {
      Inode& node = *handles_[call.handle].node;
      after(node.settled_ns);
      node.settled_ns = at;
      break;
    }
    case Kind::barrier:
      for (const std::uint32_t index : call.files) after(handles_[index].node->settled_ns);
      for (const std::uint32_t index : call.files) handles_[index].settled_ns = std::max(handles_[index].settled_ns, at);
      break;
    case Kind::close:
      after(handles_[call.handle].settled_ns);
      break;
    default:
      break;
  }
  if (call.handle != kNone) handles_[call.handle].settled_ns = std::max(handles_[call.handle].settled_ns, at);
  kernel_.push({at}, *this, static_cast<std::uint32_t>(call.kind), slot, epoch_);
}

DiskPort::Call* DiskPort::file_call(Kind kind, io::Op& op, io::FileId id, const char* name) {
  if (!running_) return nullptr;
  io::submit(op);
  Handle* handle = find(id);
  if (handle == nullptr) {
    ++kernel_.counts.stale_handles;
    done_.complete(op, {io::Errc::cancelled, 0, name}, 0);
    return nullptr;
  }
  Call& call = calls_[take_call(kind, op)];
  call.handle = static_cast<std::uint32_t>(handle - handles_.data());
  call.sequence = disk_.next_sequence();
  return &call;
}

DiskPort::Call* DiskPort::path_call(Kind kind, io::Op& op, std::string_view path) {
  if (!running_) return nullptr;
  io::submit(op);
  Call& call = calls_[take_call(kind, op)];
  call.path.assign(path);
  call.sequence = disk_.next_sequence();
  return &call;
}

void DiskPort::append(io::Op& op, io::FileId id, std::span<const ConstBuf> pieces) {
  Call* call = file_call(Kind::append, op, id, "append");
  if (call == nullptr) return;
  call->pieces.assign(pieces.begin(), pieces.end());
  for (const ConstBuf& piece : pieces) call->bytes += piece.size();
  schedule(newest_);
}

void DiskPort::rewrite(io::Op& op, io::FileId id, std::uint64_t at, ConstBuf bytes) {
  Call* call = file_call(Kind::rewrite, op, id, "rewrite");
  if (call == nullptr) return;
  call->pieces.assign(1, bytes);
  call->bytes = bytes.size();
  call->at = at;
  schedule(newest_);
}

void DiskPort::truncate(io::Op& op, io::FileId id, std::uint64_t bytes) {
  Call* call = file_call(Kind::truncate, op, id, "truncate");
  if (call == nullptr) return;
  call->at = bytes;
  schedule(newest_);
}

void DiskPort::reserve(io::Op& op, io::FileId id, std::uint64_t bytes) {
  Call* call = file_call(Kind::reserve, op, id, "reserve");
  if (call == nullptr) return;
  call->at = bytes;
  schedule(newest_);
}

void DiskPort::read(io::Op& op, io::FileId id, std::uint64_t at, MutBuf into) {
  Call* call = file_call(Kind::read, op, id, "read");
  if (call == nullptr) return;
  call->at = at;
  call->into = into;
  schedule(newest_);
}

void DiskPort::close(io::Op& op, io::FileId id) {
  Call* call = file_call(Kind::close, op, id, "close");
  if (call == nullptr) return;
  handles_[call->handle].closing = true;
  schedule(newest_);
}

void DiskPort::barrier(io::Op& op, std::span<const io::BarrierFile> files) {
  if (!running_) return;
  io::submit(op);
  for (const io::BarrierFile& file : files) {
    if (find(file.file) != nullptr) continue;
    ++kernel_.counts.stale_handles;
    done_.complete(op, {io::Errc::cancelled, 0, "barrier"}, 0);
    return;
  }
  const std::uint32_t slot = take_call(Kind::barrier, op);
  Call& call = calls_[slot];
  for (const io::BarrierFile& file : files) call.files.push_back(static_cast<std::uint32_t>(find(file.file) - handles_.data()));
  call.sequence = disk_.last_sequence();
  schedule(slot);
}

void DiskPort::open(io::Op& op, std::string_view path, io::OpenMode mode) {
  Call* call = path_call(Kind::open, op, path);
  if (call == nullptr) return;
  call->mode = mode;
  schedule(newest_);
}

void DiskPort::lock(io::Op& op, std::string_view path, io::LockKind kind) {
  Call* call = path_call(Kind::lock, op, path);
  if (call == nullptr) return;
  call->mode = kind == io::LockKind::exclusive ? io::OpenMode::rewrite : io::OpenMode::read;
  schedule(newest_);
}

void DiskPort::rename(io::Op& op, std::string_view from, std::string_view to) {
  Call* call = path_call(Kind::rename, op, from);
  if (call == nullptr) return;
  call->to.assign(to);
  schedule(newest_);
}

void DiskPort::unlink(io::Op& op, std::string_view path) {
  if (path_call(Kind::unlink, op, path) != nullptr) schedule(newest_);
}

void DiskPort::make_dir(io::Op& op, std::string_view path) {
  if (path_call(Kind::make_dir, op, path) != nullptr) schedule(newest_);
}

void DiskPort::remove_dir(io::Op& op, std::string_view path) {
  if (path_call(Kind::remove_dir, op, path) != nullptr) schedule(newest_);
}

void DiskPort::sync_dir(io::Op& op, std::string_view dir) {
  if (path_call(Kind::sync_dir, op, dir) != nullptr) schedule(newest_);
}

void DiskPort::stat(io::Op& op, std::string_view path, bool follow, io::Stat& out) {
  Call* call = path_call(Kind::stat, op, path);
  if (call == nullptr) return;
  call->follow = follow;
  call->out = &out;
  schedule(newest_);
}

void DiskPort::list(io::Op& op, std::string_view dir, std::vector<io::DirEntry>& out) {
  Call* call = path_call(Kind::list, op, dir);
  if (call == nullptr) return;
  call->out = &out;
  schedule(newest_);
}

void DiskPort::usage(io::Op& op, std::string_view path, io::DiskUsage& out) {
  Call* call = path_call(Kind::usage, op, path);
  if (call == nullptr) return;
  call->out = &out;
  schedule(newest_);
}

void DiskPort::on_event(std::uint32_t, std::uint64_t slot, std::uint64_t epoch) {
  if (epoch != epoch_) return;
  Call& call = calls_[static_cast<std::size_t>(slot)];
  RQ_CHECK(call.op != nullptr);
  const Outcome outcome = execute(call);
  io::Op& op = *call.op;
  const Kind kind = call.kind;
  drop_call(static_cast<std::uint32_t>(slot));
  done_.complete(op, outcome.error, outcome.value);
  const bool step = kind == Kind::rename || kind == Kind::unlink || kind == Kind::truncate || kind == Kind::make_dir ||
                    kind == Kind::remove_dir || kind == Kind::sync_dir || kind == Kind::barrier || kind == Kind::rewrite;
  if (step && disk_.on_step) disk_.on_step();
}

// ---- the end of the process

void DiskPort::kill() {
  Random& draws = disk_.streams.kill;
  enum class Mood { all, none, each };
  static constexpr Mood kMoods[] = {Mood::all, Mood::none, Mood::each, Mood::each};
  const Mood mood = kMoods[draws.below(4)];
  std::vector<const Inode*> stopped;  // an earlier write to it did not happen
  for (std::uint32_t slot = oldest_; slot != kNone; slot = calls_[slot].later) {
    Call& call = calls_[slot];
    const bool happens = mood == Mood::all || (mood == Mood::each && draws.below(2) == 0);
    switch (call.kind) {
      case Kind::close:
      case Kind::read:
      case Kind::stat:
      case Kind::list:
      case Kind::usage:
        break;  // leave no trace
      case Kind::append:
      case Kind::rewrite:
      case Kind::truncate:
      case Kind::reserve: {
        const Inode* node = handles_[call.handle].node.get();
        if (std::find(stopped.begin(), stopped.end(), node) != stopped.end()) break;
        if (happens) {
          (void)execute(call);
          break;
        }
        stopped.push_back(node);
        if (mood != Mood::each || draws.below(2) == 0 || call.bytes == 0) break;
        const std::uint64_t part = draws.below(call.bytes);
        if (part > 0 && !handles_[call.handle].fault) {
          ++kernel_.counts.torn_appends;
          (void)(call.kind == Kind::append ? do_append(call, part) : do_rewrite(call, part));
        }
        break;
      }
      default:
        if (happens) (void)execute(call);
        break;
    }
  }
  while (oldest_ != kNone) {
    forget(*calls_[oldest_].op);
    drop_call(oldest_);
  }
  for (std::uint32_t index = 0; index < handles_.size(); ++index) {
    if (handles_[index].node == nullptr) continue;
    handles_[index].node->settled_ns = 0;
    drop_handle(index);
  }
  ++epoch_;
}

}  // namespace rq::sim
