#include "io/real/disk.h"

#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "io/real/errors.h"

namespace rq::real {

namespace {
constexpr std::uint64_t kAloneBytes = 1 << 20;  // a file with so much to write gets a job of its own
constexpr std::size_t kGroupJobs = 8;           // jobs over which the files of one barrier are spread
// A read of so much that the page cache holds is copied by the loop: a worker would copy as long and cost two switches beside it.
constexpr std::size_t kReadHereBytes = 128 << 10;
constexpr std::size_t kAppendHereBytes = 64 << 10;  // longer appends are worth a worker

Instant monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return {t.tv_sec * kSecond + t.tv_nsec};
}

}  // namespace

// The queues of one or more files, run one after the other.
struct RealDisk::FilesJob final : Job {
  struct Part {
    std::uint32_t index;
    FileHandle* handle;  // null: syncs only, which run beside appends (I5) on a copy of the handle
    FileHandle beside;
    FileCall* calls;
  };
  explicit FilesJob(RealDisk& disk_) : disk(disk_) { lane = Lane::slow; }
  void execute() noexcept override {
    for (Part& part : parts) execute_calls(part.handle != nullptr ? *part.handle : part.beside, part.calls);
  }
  void finish() override {
    for (Part& part : parts) {
      File& file = disk.files_[part.index];
      if (part.handle != nullptr) {
        file.busy = false;
      } else {
        file.syncing = false;
        if (part.beside.fault && !file.handle.fault) file.handle.fault = part.beside.fault;
      }
      disk.finish_calls(part.index, part.calls);
    }
    delete this;
  }
  RealDisk& disk;
  std::vector<Part> parts;
};

// A read of a handle without queued calls.
struct RealDisk::ReadJob final : Job {
  ReadJob(RealDisk& disk_, std::uint32_t index_, int fd, FileCall& call_) : disk(disk_), index(index_), call(call_) {
    handle.fd = fd;
  }
  void execute() noexcept override { execute_calls(handle, &call); }
  void finish() override {
    File& file = disk.files_[index];
    --file.reads_aside;
    disk.finish_call(index, call);
    if (file.head != nullptr && file.reads_aside == 0) disk.make_ready(index);
    delete this;
  }
  RealDisk& disk;
  std::uint32_t index;
  FileCall& call;
  FileHandle handle;
};

struct RealDisk::SyncfsJob final : Job {
  SyncfsJob(RealDisk& disk_, BarrierCall& barrier_) : disk(disk_), barrier(barrier_) { lane = Lane::slow; }
  void execute() noexcept override {
    int result = 0;
    do result = ::syncfs(disk.gate_.fd());
    while (result != 0 && errno == EINTR);
    if (result != 0) barrier.error = error_from(errno, "syncfs");
  }
  void finish() override {
    disk.turn_.complete(*barrier.op, barrier.error);
    delete &barrier;
    delete this;
  }
  RealDisk& disk;
  BarrierCall& barrier;
};

RealDisk::RealDisk(io::Turn& turn, Pool& pool, DiskOptions options)
    : turn_(turn), pool_(pool), gate_(options.barrier, std::move(options.data_path)) {}

RealDisk::~RealDisk() {
  while (free_calls_ != nullptr) {
    FileCall* call = free_calls_;
    free_calls_ = call->next;
    delete call;
  }
  for (File& file : files_) {
    if (file.handle.fd >= 0) ::close(file.handle.fd);
  }
}

// ---- handles

RealDisk::File* RealDisk::find(io::FileId id) {
  const std::uint32_t index = index_of(id);
  if (index >= files_.size()) return nullptr;
  File& file = files_[index];
  return file.open && id_of(index) == id ? &file : nullptr;
}

io::FileId RealDisk::id_of(std::uint32_t index) const {
  return static_cast<io::FileId>(std::uint64_t{files_[index].generation} << 32 | (std::uint64_t{index} + 1));
}

io::FileId RealDisk::adopt(const FileHandle& handle) {
  if (free_files_.empty()) {
    free_files_.push_back(static_cast<std::uint32_t>(files_.size()));
    files_.emplace_back();
  }
  const std::uint32_t index = free_files_.back();
  free_files_.pop_back();
  File& file = files_[index];
  RQ_CHECK(!file.open && !file.busy && file.head == nullptr);
  file.handle = handle;
  file.open = true;
  file.writes_awaited = false;
  file.dirty_bytes = 0;
  return id_of(index);
}

void RealDisk::stale(io::Op& op, const char* name) {
  ++counters_.stale_calls;
  turn_.complete(op, {io::Errc::cancelled, 0, name});
}

// ---- calls on files

FileCall& RealDisk::take_call(CallKind kind, io::Op* op) {
  FileCall* call = free_calls_;
  if (call == nullptr) {
    call = new FileCall;
  } else {
    free_calls_ = call->next;
  }
  call->next = nullptr;
  call->kind = kind;
  call->op = op;
  return *call;
}

void RealDisk::recycle(FileCall& call) {
  std::vector<ConstBuf> pieces = std::move(call.pieces);  // keeps its capacity
  pieces.clear();
  call = FileCall{};
  call.pieces = std::move(pieces);
  call.next = free_calls_;
  free_calls_ = &call;
}

void RealDisk::queue(std::uint32_t index, FileCall& call) {
  File& file = files_[index];
  *file.tail = &call;
  file.tail = &call.next;
  if (!file.busy && file.reads_aside == 0) make_ready(index);
}

void RealDisk::make_ready(std::uint32_t index) {
  File& file = files_[index];
  if (file.listed) return;
  file.listed = true;
  ready_.push_back(index);
}

void RealDisk::append(io::Op& op, io::FileId id, std::span<const ConstBuf> pieces) {
  io::submit(op);
  File* file = find(id);
  if (file == nullptr) return stale(op, "append");
  FileCall& call = take_call(CallKind::append, &op);
  call.pieces.assign(pieces.begin(), pieces.end());
  for (const ConstBuf& piece : pieces) call.bytes += piece.size();
  file->dirty_bytes += call.bytes;
  queue(index_of(id), call);
}

void RealDisk::rewrite(io::Op& op, io::FileId id, std::uint64_t at, ConstBuf bytes) {
  io::submit(op);
  File* file = find(id);
  if (file == nullptr) return stale(op, "rewrite");
  FileCall& call = take_call(CallKind::rewrite, &op);
  call.at = at;
  call.bytes = bytes.size();
  call.pieces.assign(1, bytes);
  file->dirty_bytes += bytes.size();
  queue(index_of(id), call);
}

void RealDisk::truncate(io::Op& op, io::FileId id, std::uint64_t bytes) {
  io::submit(op);
  if (find(id) == nullptr) return stale(op, "truncate");
  FileCall& call = take_call(CallKind::truncate, &op);
  call.at = bytes;
  queue(index_of(id), call);
}

void RealDisk::reserve(io::Op& op, io::FileId id, std::uint64_t bytes) {
  io::submit(op);
  if (find(id) == nullptr) return stale(op, "reserve");
  FileCall& call = take_call(CallKind::reserve, &op);
  call.at = bytes;
  queue(index_of(id), call);
}

// False: the page cache does not hold all of it, or the file ends before, or the file system cannot tell; nothing was waited for.
bool RealDisk::read_cached(int fd, std::uint64_t at, MutBuf into) {
  if (!tells_cached_ || into.size() > kReadHereBytes) return false;
  iovec piece{into.data(), into.size()};
  const ssize_t got = ::preadv2(fd, &piece, 1, static_cast<off_t>(at), RWF_NOWAIT);
  if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) tells_cached_ = false;
  return got >= 0 && static_cast<std::size_t>(got) == into.size();
}

void RealDisk::read(io::Op& op, io::FileId id, std::uint64_t at, MutBuf into) {
  io::submit(op);
  File* file = find(id);
  if (file == nullptr) return stale(op, "read");
  const std::uint32_t index = index_of(id);
  const bool behind = file->busy || file->head != nullptr;
  if (!behind && read_cached(file->handle.fd, at, into)) {
    ++counters_.reads_here;
    return turn_.complete(op, {}, into.size());
  }
  FileCall& call = take_call(CallKind::read, &op);
  call.at = at;
  call.into = into;
  if (behind) return queue(index, call);
  ++file->reads_aside;
  ++counters_.jobs;
  pool_.submit(*new ReadJob(*this, index, file->handle.fd, call));
}

void RealDisk::close(io::Op& op, io::FileId id) {
  io::submit(op);
  File* file = find(id);
  if (file == nullptr) return stale(op, "close");
  file->open = false;
  queue(index_of(id), take_call(CallKind::close, &op));
}

void RealDisk::barrier(io::Op& op, std::span<const io::BarrierFile> files) {
  io::submit(op);
  ++counters_.barriers;
  BarrierCall* barrier = new BarrierCall;
  barrier->op = &op;
  barrier->parts_left = 1;  // held by this function
  std::uint64_t largest_dirty = 0;
  for (const io::BarrierFile& entry : files) {
    if (const File* file = find(entry.file)) largest_dirty = std::max(largest_dirty, file->dirty_bytes);
  }
  barrier->syncfs = gate_.chosen(files.size(), largest_dirty);
  for (const io::BarrierFile& entry : files) {
    File* file = find(entry.file);
    if (file == nullptr) {
      ++counters_.stale_calls;
      if (!barrier->error) barrier->error = {io::Errc::cancelled, 0, "barrier"};
      continue;
    }
    FileCall& call = take_call(CallKind::sync, nullptr);
    call.barrier = barrier;
    call.how = entry.how;
    call.sync_here = !barrier->syncfs;
    ++barrier->parts_left;
    file->dirty_bytes = 0;
    file->group = barrier;
    queue(index_of(entry.file), call);
  }
  finish_part(*barrier, {});
}

void RealDisk::finish_part(BarrierCall& barrier, io::Error error) {
  if (error && !barrier.error) barrier.error = error;
  if (--barrier.parts_left > 0) return;
  if (barrier.syncfs && !barrier.error) {
    ++counters_.jobs;
    ++counters_.syncfs_barriers;
    pool_.submit(*new SyncfsJob(*this, barrier));
    return;
  }
  turn_.complete(*barrier.op, barrier.error);
  delete &barrier;
}

// Writes the appends at the head of the queue, where somebody waits for the write itself (I5).
void RealDisk::append_here(std::uint32_t index) {
  File& file = files_[index];
  FileCall* end = file.head;
  std::uint64_t bytes = 0;
  for (; end != nullptr && end->kind == CallKind::append; end = end->next) bytes += end->bytes;
  if (end == file.head || bytes > kAppendHereBytes) return;
  if (end == nullptr) file.writes_awaited = true;
  if (!file.writes_awaited) return;
  const Instant before = monotonic_now();
  if (!stalls_.may_write(before)) return;
  FileCall* calls = file.head;
  FileCall* last = calls;
  while (last->next != end) last = last->next;
  last->next = nullptr;
  file.head = end;
  if (end == nullptr) file.tail = &file.head;
  execute_calls(file.handle, calls);
  stalls_.took(before, monotonic_now());
  ++counters_.appends_here;
  while (calls != nullptr) {
    FileCall& call = *calls;
    calls = call.next;
    finish_call(index, call);
  }
}

void RealDisk::flush() {
  if (ready_.empty()) return;
  // A barrier's files go to at most kGroupJobs jobs, so that small barriers do not wait behind each other; a large file goes
  // alone, so that nothing waits behind it.
  BarrierCall* group = nullptr;
  std::array<FilesJob*, kGroupJobs> jobs{};
  std::size_t turn = 0;
  const auto submit_group = [&] {
    for (FilesJob*& job : jobs) {
      if (job != nullptr) pool_.submit(*job);
      job = nullptr;
    }
    turn = 0;
  };
  for (const std::uint32_t index : ready_) {
    File& file = files_[index];
    RQ_CHECK(file.listed && !file.busy && file.reads_aside == 0 && file.head != nullptr);
    file.listed = false;
    append_here(index);
    if (file.head == nullptr || file.syncing) continue;
    std::uint64_t bytes = 0;
    bool syncs_only = true;
    for (const FileCall* call = file.head; call != nullptr; call = call->next) {
      bytes += call->bytes;
      syncs_only = syncs_only && call->kind == CallKind::sync;
    }
    if (file.group != group) submit_group();
    group = file.group;
    FilesJob* alone = nullptr;
    FilesJob*& job = bytes > kAloneBytes ? alone : jobs[turn++ % kGroupJobs];
    if (job == nullptr) {
      job = new FilesJob(*this);
      ++counters_.jobs;
    }
    job->parts.push_back({index, syncs_only ? nullptr : &file.handle, file.handle, file.head});
    file.head = nullptr;
    file.tail = &file.head;
    file.busy = !syncs_only;
    file.syncing = syncs_only;
    file.group = nullptr;
    if (alone != nullptr) pool_.submit(*alone);
  }
  submit_group();
  ready_.clear();
}

void RealDisk::finish_calls(std::uint32_t index, FileCall* calls) {
  while (calls != nullptr) {
    FileCall& call = *calls;
    calls = call.next;
    finish_call(index, call);
  }
  // A read beside a sync that has ended may still run; its end makes the file ready.
  if (files_[index].head != nullptr && files_[index].reads_aside == 0) make_ready(index);
}

void RealDisk::finish_call(std::uint32_t index, FileCall& call) {
  const io::Error error = call.error;
  const std::uint64_t value = call.value;
  io::Op* op = call.op;
  BarrierCall* barrier = call.barrier;
  const bool closed = call.kind == CallKind::close;
  recycle(call);
  if (barrier != nullptr) return finish_part(*barrier, error);
  if (closed) {
    File& file = files_[index];
    ++file.generation;
    file.group = nullptr;
    free_files_.push_back(index);
  }
  turn_.complete(*op, error, value);
}

}  // namespace rq::real
