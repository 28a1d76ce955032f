#include "core/storage/read_pool.h"

#include "core/base/probe.h"

namespace rq::storage {

struct ReadPool::Handle {
  ReadPool* pool = nullptr;
  std::string path;
  io::FileId file = io::FileId::none;
  std::deque<Read*> waiting;  // until the open completed
  std::size_t users = 0;
  std::uint64_t last_use = 0;
  bool forgotten = false;
  bool closing = false;
  io::Op op;
};

ReadPool::ReadPool(io::Host& host) : host_(host) {}
ReadPool::~ReadPool() = default;

void ReadPool::start(Read& read) {
  RQ_CHECK(!read.busy && read.done != nullptr);
  read.busy = true;
  read.error = {};
  read.got = 0;
  read.pool = this;
  ++active_;
  begin(read);
}

void ReadPool::begin(Read& read) {
  auto found = handles_.find(read.path);
  // What is forgotten was removed: another file may have the name by now.
  if (found != handles_.end() && (found->second->closing || found->second->forgotten)) {
    deferred_.push_back(&read);
    return;
  }
  if (found == handles_.end()) {
    if (handles_.size() >= kHandlesMax) {
      evict();
      deferred_.push_back(&read);
      return;
    }
    auto handle = std::make_unique<Handle>();
    handle->pool = this;
    handle->path = read.path;
    handle->op.done = &ReadPool::on_open;
    handle->op.self = handle.get();
    found = handles_.emplace(read.path, std::move(handle)).first;
    host_.disk.open(found->second->op, read.path, io::OpenMode::read);
  }
  Handle& handle = *found->second;
  read.handle = &handle;
  ++handle.users;
  handle.last_use = ++clock_;
  if (handle.file == io::FileId::none) {
    handle.waiting.push_back(&read);
    return;
  }
  read.op.done = &ReadPool::on_read;
  read.op.self = &read;
  host_.disk.read(read.op, handle.file, read.at, read.into);
}

void ReadPool::on_open(io::Op& op) noexcept {
  Handle& handle = *static_cast<Handle*>(op.self);
  ReadPool& pool = *handle.pool;
  std::deque<Read*> waiting;
  waiting.swap(handle.waiting);
  if (op.error) {
    const io::Error error = op.error;
    pool.handles_.erase(handle.path);  // destroys the handle
    if (error.code == io::Errc::no_handles) {
      RQ_SOMETIMES(true, "reads: out of file handles, evict and retry");
      pool.evict();
      for (Read* read : waiting) {
        read->handle = nullptr;
        pool.deferred_.push_back(read);
      }
      pool.starved_ = true;
      return;
    }
    for (Read* read : waiting) {
      read->handle = nullptr;
      read->error = error;
      pool.finish(*read);
    }
    return;
  }
  handle.file = op.file();
  for (Read* read : waiting) {
    read->op.done = &ReadPool::on_read;
    read->op.self = read;
    pool.host_.disk.read(read->op, handle.file, read->at, read->into);
  }
}

void ReadPool::on_read(io::Op& op) noexcept {
  Read& read = *static_cast<Read*>(op.self);
  ReadPool& pool = *read.pool;
  read.error = op.error;
  read.got = op.error ? 0 : op.value;
  if (read.error.code == io::Errc::eof) read.error = {};
  Handle& handle = *std::exchange(read.handle, nullptr);
  --handle.users;
  if (handle.users == 0 && (handle.forgotten || !pool.deferred_.empty())) pool.close(handle);
  pool.finish(read);
}

void ReadPool::retry() {
  starved_ = false;
  std::deque<Read*> again;
  again.swap(deferred_);
  for (Read* read : again) begin(*read);
}

void ReadPool::finish(Read& read) {
  --active_;
  read.busy = false;
  read.done(read);  // may destroy the read
}

void ReadPool::forget(const std::string& path) {
  auto found = handles_.find(path);
  if (found == handles_.end()) return;
  found->second->forgotten = true;
  if (found->second->users == 0) close(*found->second);
}

void ReadPool::evict() {
  Handle* oldest = nullptr;
  for (auto& [path, handle] : handles_)
    if (handle->users == 0 && !handle->closing && (oldest == nullptr || handle->last_use < oldest->last_use))
      oldest = handle.get();
  if (oldest != nullptr) close(*oldest);
}

void ReadPool::close(Handle& handle) {
  if (handle.closing) return;
  handle.closing = true;
  handle.op.done = &ReadPool::on_close;
  handle.op.self = &handle;
  host_.disk.close(handle.op, handle.file);
}

void ReadPool::on_close(io::Op& op) noexcept {
  Handle& handle = *static_cast<Handle*>(op.self);
  ReadPool& pool = *handle.pool;
  pool.handles_.erase(handle.path);  // destroys the handle
  std::deque<Read*> again;
  again.swap(pool.deferred_);
  for (Read* read : again) pool.begin(*read);
}

}  // namespace rq::storage
