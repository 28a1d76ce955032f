// What the calls of the Disk port do to the machine's disk, and how they fail.
#include <algorithm>
#include <cerrno>

#include "core/base/check.h"
#include "io/sim/disk_port.h"

namespace rq::sim {
namespace {

constexpr std::uint64_t kAllBytes = ~0ull;

io::Error not_found(const char* op) { return {io::Errc::not_found, ENOENT, op}; }

}  // namespace

io::Error DiskPort::io_error(const char* op) {
  ++kernel_.counts.io_errors;
  return {io::Errc::io, EIO, op};
}

io::Error DiskPort::name_error(const char* op, bool takes_space) {
  if (fault(disk_.streams.names, disk_.faults.write_io_error)) return io_error(op);
  if (!takes_space || !fault(disk_.streams.names, disk_.faults.no_space)) return {};
  ++kernel_.counts.no_space;
  return {io::Errc::no_space, ENOSPC, op};
}

// A directory is opened to be listed or synced.
io::Error DiskPort::directory_error(const char* op) {
  if (!fault(disk_.streams.directories, disk_.faults.no_handles)) return {};
  ++kernel_.counts.no_handles;
  return {io::Errc::no_handles, EMFILE, op};
}

DiskPort::Outcome DiskPort::execute(Call& call) {
  static constexpr std::string_view kNames[] = {"open",    "close",    "read",   "append",   "rewrite",    "truncate",
                                                "barrier", "rename",   "unlink", "make_dir", "remove_dir", "stat",
                                                "list",    "sync_dir", "lock",   "reserve",  "usage"};
  Outcome outcome;
  const std::uint64_t file = call.handle == kNone ? 0 : handles_[call.handle].node->id;
  switch (call.kind) {
    case Kind::open:
    case Kind::lock:
      outcome = do_open(call);
      break;
    case Kind::close:
      drop_handle(call.handle);
      break;
    case Kind::read:
      outcome = do_read(call);
      break;
    case Kind::append:
      outcome = do_append(call, kAllBytes);
      break;
    case Kind::rewrite:
      outcome = do_rewrite(call, kAllBytes);
      break;
    case Kind::truncate:
      outcome = do_truncate(call);
      break;
    case Kind::barrier:
      outcome = do_barrier(call);
      break;
    case Kind::rename:
      outcome = do_rename(call);
      break;
    case Kind::unlink:
      outcome = do_unlink(call);
      break;
    case Kind::make_dir:
      outcome = do_make_dir(call);
      break;
    case Kind::remove_dir:
      outcome = do_remove_dir(call);
      break;
    case Kind::stat:
      outcome = do_stat(call);
      break;
    case Kind::list:
      outcome = do_list(call);
      break;
    case Kind::sync_dir:
      outcome = do_sync_dir(call);
      break;
    case Kind::reserve:
      outcome = do_reserve(call);
      break;
    case Kind::usage:
      outcome = do_usage(call);
      break;
  }
  const std::string_view name = kNames[static_cast<std::size_t>(call.kind)];
  const std::string_view whose = call.path.empty() ? std::string_view(done_.label()) : std::string_view(call.path);
  kernel_.trace(name, whose, static_cast<std::uint64_t>(outcome.error.code) | file << 8, outcome.value);
  return outcome;
}

DiskPort::Outcome DiskPort::do_open(Call& call) {
  const char* name = call.kind == Kind::lock ? "lock" : "open";
  const bool fails = call.kind == Kind::open && fault(disk_.streams.open, disk_.faults.no_handles);
  if (fails || open_handles_ >= disk_.handles_max) {
    ++kernel_.counts.no_handles;
    return {{io::Errc::no_handles, EMFILE, name}};
  }
  FileTree::Place place = disk_.tree.find(call.path);
  if (place.node != nullptr && place.node->kind == io::FileKind::directory) return {{io::Errc::io, EISDIR, name}};
  const bool exclusive = call.kind == Kind::lock && call.mode == io::OpenMode::rewrite;
  const bool creates = exclusive || (call.mode != io::OpenMode::read && call.mode != io::OpenMode::rewrite);
  if (place.node == nullptr) {
    if (!creates || place.dir == nullptr) return {not_found(name)};
    if (fault(disk_.streams.space, disk_.faults.no_space)) {
      ++kernel_.counts.no_space;
      return {{io::Errc::no_space, ENOSPC, name}};
    }
    place.node = disk_.tree.create(place, io::FileKind::file);
  } else if (call.mode == io::OpenMode::append_new) {
    return {{io::Errc::exists, EEXIST, name}};
  }
  Inode& node = *place.node;
  if (call.kind == Kind::lock && (node.lock_owner != 0 || (exclusive && node.lock_shares != 0)))
    return {{io::Errc::locked, EWOULDBLOCK, name}};
  if (call.mode == io::OpenMode::create) {
    node.data.truncate(call.sequence, 0);
    node.unreadable = ~0ull;
    node.reserved = 0;
  }
  const io::FileId id = make_handle(place.node, call.mode);
  if (exclusive) {
    node.lock_owner = find(id)->serial;
  } else if (call.kind == Kind::lock) {
    find(id)->shares_lock = true;
    ++node.lock_shares;
  }
  disk_.recharge(node);
  return {{}, static_cast<std::uint64_t>(id)};
}

DiskPort::Outcome DiskPort::do_read(Call& call) {
  const Handle& handle = handles_[call.handle];
  if (handle.mode != io::OpenMode::read && handle.mode != io::OpenMode::rewrite) return {{io::Errc::io, EBADF, "read"}};
  if (fault(disk_.streams.read, disk_.faults.read_io_error)) return {io_error("read")};
  const std::string& content = handle.node->data.content();
  if (call.into.empty()) return {};
  if (call.at >= content.size()) return {{io::Errc::eof, 0, "read"}};
  const std::size_t bytes = std::min<std::uint64_t>(call.into.size(), content.size() - call.at);
  const std::uint64_t bad = handle.node->unreadable;
  if (bad >= call.at && bad - call.at < bytes) return {io_error("read")};
  std::memcpy(call.into.data(), content.data() + call.at, bytes);
  return {{}, bytes};
}

// Writes at most `bytes_max` (a kill in the middle of the call).
DiskPort::Outcome DiskPort::do_append(Call& call, std::uint64_t bytes_max) {
  Handle& handle = handles_[call.handle];
  const bool appends = handle.mode != io::OpenMode::read && handle.mode != io::OpenMode::rewrite;
  if (!appends) return {{io::Errc::io, EBADF, "append"}};
  if (handle.fault) return {handle.fault};
  Inode& node = *handle.node;
  std::uint64_t budget = std::min(call.bytes, bytes_max);
  io::Error error{};
  if (fault(disk_.streams.space, disk_.faults.no_space)) {
    ++kernel_.counts.no_space;
    error = {io::Errc::no_space, ENOSPC, "append"};
    budget = std::min(budget, disk_.streams.torn.below(call.bytes + 1));
  } else if (fault(disk_.streams.write, disk_.faults.write_io_error)) {
    error = io_error("append");
    budget = std::min(budget, disk_.streams.torn.below(call.bytes + 1));
  }
  const std::uint64_t room = disk_.fit(node, node.data.size() + budget) - node.data.size();
  if (room < budget) {
    ++kernel_.counts.no_space;
    error = {io::Errc::no_space, ENOSPC, "append"};
    budget = room;
  }
  std::uint64_t left = budget;
  for (const ConstBuf& piece : call.pieces) {
    const std::size_t take = std::min<std::uint64_t>(piece.size(), left);
    if (take > 0) node.data.append(call.sequence, piece.first(take));
    left -= take;
  }
  disk_.recharge(node);
  if (!error) return {{}, budget};
  if (budget > 0) ++kernel_.counts.torn_appends;
  handle.fault = error;
  handle.torn = true;
  return {error, budget};
}

DiskPort::Outcome DiskPort::do_rewrite(Call& call, std::uint64_t bytes_max) {
  Handle& handle = handles_[call.handle];
  if (handle.mode != io::OpenMode::rewrite) return {{io::Errc::io, EBADF, "rewrite"}};
  if (call.bytes == 0) return {};
  Inode& node = *handle.node;
  std::uint64_t budget = std::min(call.bytes, bytes_max);
  io::Error error{};
  if (fault(disk_.streams.write, disk_.faults.write_io_error)) {
    error = io_error("rewrite");
    budget = disk_.streams.torn.below(call.bytes);
  }
  const std::uint64_t end = disk_.fit(node, std::max(node.data.size(), call.at + budget));
  if (end < call.at + budget) {
    ++kernel_.counts.no_space;
    error = {io::Errc::no_space, ENOSPC, "rewrite"};
    budget = end > call.at ? end - call.at : 0;
  }
  node.data.write(call.sequence, call.at, call.pieces.front().first(budget));
  if (node.unreadable >= call.at && node.unreadable - call.at < budget) node.unreadable = ~0ull;
  disk_.recharge(node);
  if (error) handle.fault = error;
  return {error, budget};
}

DiskPort::Outcome DiskPort::do_truncate(Call& call) {
  Handle& handle = handles_[call.handle];
  if (handle.mode == io::OpenMode::read) return {{io::Errc::io, EINVAL, "truncate"}};
  if (fault(disk_.streams.write, disk_.faults.write_io_error)) return {io_error("truncate")};
  Inode& node = *handle.node;
  node.data.truncate(call.sequence, call.at);
  if (node.unreadable >= call.at) node.unreadable = ~0ull;
  node.reserved = 0;
  disk_.recharge(node);
  if (handle.torn) {
    handle.torn = false;
    handle.fault = {};
  }
  return {};
}

DiskPort::Outcome DiskPort::do_barrier(Call& call) {
  io::Error error{};
  const bool sync_fails = fault(disk_.streams.sync, disk_.faults.sync_fail) && !call.files.empty();
  if (sync_fails) ++kernel_.counts.sync_failures;
  // One of the files fails; each of the others may have been reached before.
  const std::uint64_t victim = sync_fails ? disk_.streams.sync_files.below(call.files.size()) : 0;
  for (std::size_t i = 0; i < call.files.size(); ++i) {
    Handle& handle = handles_[call.files[i]];
    if (handle.fault) {
      error = handle.fault;
    } else if (sync_fails && (i == victim || disk_.streams.sync_files.below(2) == 0)) {
      handle.node->data.fail_sync(call.sequence);
      handle.fault = {io::Errc::io, EIO, "barrier"};
      error = handle.fault;
    } else {
      handle.node->data.sync(call.sequence);
    }
  }
  return {error};
}

DiskPort::Outcome DiskPort::do_rename(Call& call) {
  if (fault(disk_.streams.write, disk_.faults.write_io_error)) return {io_error("rename")};
  if (fault(disk_.streams.names, disk_.faults.no_space)) {
    ++kernel_.counts.no_space;
    return {{io::Errc::no_space, ENOSPC, "rename"}};
  }
  const FileTree::Place from = disk_.tree.find(call.path, false);
  const FileTree::Place to = disk_.tree.find(call.to, false);
  if (from.node == nullptr || from.dir == nullptr || to.dir == nullptr) return {not_found("rename")};
  const bool from_dir = from.node->kind == io::FileKind::directory;
  if (to.node != nullptr && to.node != from.node) {
    const bool to_dir = to.node->kind == io::FileKind::directory;
    if (to_dir && !from_dir) return {{io::Errc::io, EISDIR, "rename"}};
    if (from_dir && !to_dir) return {{io::Errc::not_found, ENOTDIR, "rename"}};
    if (to_dir && !to.node->names.empty()) return {{io::Errc::exists, ENOTEMPTY, "rename"}};
  }
  if (from_dir && call.to.starts_with(call.path + "/")) return {{io::Errc::io, EINVAL, "rename"}};
  disk_.tree.rename(from, to);
  if (to.node != nullptr) disk_.recharge(*to.node);
  return {};
}

DiskPort::Outcome DiskPort::do_unlink(Call& call) {
  const FileTree::Place place = disk_.tree.find(call.path, false);
  if (place.node == nullptr) return {not_found("unlink")};
  if (place.node->kind == io::FileKind::directory) return {{io::Errc::io, EISDIR, "unlink"}};
  if (const io::Error error = name_error("unlink", false)) return {error};
  disk_.tree.unlink(place);
  disk_.recharge(*place.node);
  return {};
}

DiskPort::Outcome DiskPort::do_make_dir(Call& call) {
  const FileTree::Place place = disk_.tree.find(call.path);
  if (place.node != nullptr) {
    if (place.node->kind == io::FileKind::directory) return {};
    return {{io::Errc::exists, EEXIST, "make_dir"}};
  }
  if (place.dir == nullptr) return {not_found("make_dir")};
  if (const io::Error error = name_error("make_dir", true)) return {error};
  disk_.tree.create(place, io::FileKind::directory);
  return {};
}

DiskPort::Outcome DiskPort::do_remove_dir(Call& call) {
  const FileTree::Place place = disk_.tree.find(call.path, false);
  if (place.node == nullptr) return {not_found("remove_dir")};
  if (place.node->kind != io::FileKind::directory) return {{io::Errc::not_found, ENOTDIR, "remove_dir"}};
  if (place.dir == nullptr) return {{io::Errc::io, EBUSY, "remove_dir"}};
  if (!place.node->names.empty()) return {{io::Errc::exists, ENOTEMPTY, "remove_dir"}};
  if (const io::Error error = name_error("remove_dir", false)) return {error};
  disk_.tree.unlink(place);
  return {};
}

DiskPort::Outcome DiskPort::do_stat(Call& call) {
  const InodePtr node = disk_.tree.find(call.path, call.follow).node;
  if (node == nullptr) return {not_found("stat")};
  const std::uint64_t bytes = node->kind == io::FileKind::file ? node->data.size() : 0;
  *static_cast<io::Stat*>(call.out) = {node->kind, bytes};
  return {};
}

DiskPort::Outcome DiskPort::do_list(Call& call) {
  auto& entries = *static_cast<std::vector<io::DirEntry>*>(call.out);
  entries.clear();
  const InodePtr dir = disk_.tree.find(call.path).node;
  if (dir == nullptr) return {not_found("list")};
  if (dir->kind != io::FileKind::directory) return {{io::Errc::not_found, ENOTDIR, "list"}};
  if (const io::Error error = directory_error("list")) return {error};
  if (fault(disk_.streams.read, disk_.faults.read_io_error)) return {io_error("list")};
  entries.reserve(dir->names.size());
  for (const auto& [name, node] : dir->names) {
    entries.push_back({name, node->kind, node->kind == io::FileKind::file ? node->data.size() : 0});
  }
  return {};
}

// A failed one leaves the names as undecided as they were; a later one may make them durable.
DiskPort::Outcome DiskPort::do_sync_dir(Call& call) {
  const InodePtr dir = disk_.tree.find(call.path).node;
  if (dir == nullptr) return {not_found("sync_dir")};
  if (dir->kind != io::FileKind::directory) return {{io::Errc::not_found, ENOTDIR, "sync_dir"}};
  if (const io::Error error = directory_error("sync_dir")) return {error};
  if (fault(disk_.streams.sync, disk_.faults.sync_fail)) {
    ++kernel_.counts.sync_failures;
    return {{io::Errc::io, EIO, "sync_dir"}};
  }
  disk_.tree.sync(dir);
  return {};
}

// Blocks behind the end of the file; 0 gives them back.
DiskPort::Outcome DiskPort::do_reserve(Call& call) {
  Handle& handle = handles_[call.handle];
  if (handle.mode == io::OpenMode::read) return {{io::Errc::io, EBADF, "reserve"}};
  Inode& node = *handle.node;
  const std::uint64_t wanted = call.at == 0 ? 0 : node.data.size() + call.at;
  if (disk_.fit(node, wanted) < wanted) {
    ++kernel_.counts.no_space;
    return {{io::Errc::no_space, ENOSPC, "reserve"}};
  }
  node.reserved = wanted;
  disk_.recharge(node);
  return {{}, call.at};
}

DiskPort::Outcome DiskPort::do_usage(Call& call) {
  if (disk_.tree.find(call.path).node == nullptr) return {not_found("usage")};
  const std::uint64_t used = disk_.claims_full ? disk_.capacity : disk_.used();
  *static_cast<io::DiskUsage*>(call.out) = {disk_.capacity, disk_.capacity > used ? disk_.capacity - used : 0};
  return {};
}

}  // namespace rq::sim
