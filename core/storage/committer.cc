#include "core/storage/committer.h"

#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/storage/script.h"

namespace rq::storage {

Slice Arena::take(std::uint32_t bytes, std::byte*& at) {
  if (bytes > chunk_bytes_ / 4) {
    Chunk* chunk = new_chunk(bytes);
    at = chunk->data();
    return Slice(chunk, at, bytes);
  }
  if (current_.empty() || chunk_bytes_ - used_ < bytes) {
    Chunk* chunk = new_chunk(chunk_bytes_);
    current_ = Slice(chunk, chunk->data(), chunk_bytes_);
    used_ = 0;
  }
  Slice slice = current_.sub(used_, bytes);
  // The arena is the only writer, and it writes a part of a chunk once, before sharing it.
  at = const_cast<std::byte*>(slice.data());
  used_ += bytes;
  return slice;
}

namespace {
// D-42a: a fault of that file concerns what stands from the offset on.
void locate(std::optional<Fault>& fault, const std::string& path, std::uint64_t offset) {
  if (fault && fault->file == path && !fault->offset) fault->offset = offset;
}
}  // namespace

struct Committer::AppendJob {
  io::Op op;
  Committer* committer = nullptr;
  LogId log = kNoLog;
  std::vector<Slice> pieces;
  std::vector<ConstBuf> bufs;
  std::uint64_t bytes = 0;
};

struct Committer::BarrierJob {
  io::Op op;
  Committer* committer = nullptr;
  struct Part {
    LogId log;
    std::uint64_t covered;
  };
  std::vector<Part> parts;
  Instant started{};
  bool may_overlap = false;  // whatever else runs: a large set was, or started together with it
  bool running = false;
};

Committer::Committer(io::Host& host, std::size_t handles_max)
    : host_(host), handles_max_(std::max<std::size_t>(handles_max, 4)) {}
Committer::~Committer() = default;

Committer::LogId Committer::add(std::string path, std::uint64_t bytes, Role role, std::uint64_t owner, std::uint64_t sub) {
  LogId id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    id = static_cast<LogId>(logs_.size());
    logs_.emplace_back();
  }
  Log& log = logs_[id];
  RQ_CHECK(!log.used && !log.listed);
  log.path = std::move(path);
  log.file = io::FileId::none;
  log.role = role;
  log.used = true;
  log.dirty = log.wants = log.in_barrier = log.retired = log.reports_writes = false;
  log.appended = log.submitted = log.written = log.covered = log.durable = log.wanted = bytes;
  log.owner = owner;
  log.sub = sub;
  log.committer = this;
  log.id = id;
  return id;
}

void Committer::close(LogId id) {
  Log& log = logs_[id];
  RQ_CHECK(log.used && !log.retired);
  log.retired = true;
  log.pieces.clear();
  drop_if_done(log);
}

bool Committer::idle(LogId id) const {
  const Log& log = logs_[id];
  return log.durable == log.appended && log.in_flight == 0 && !log.in_barrier && !log.opening;
}

bool Committer::all_idle() const {
  for (const Log& log : logs_)
    if (log.used && !log.retired && !idle(log.id)) return false;
  return true;
}

void Committer::append(LogId id, Slice bytes) {
  Log& log = logs_[id];
  RQ_CHECK(log.used && !log.retired && !bytes.empty());
  log.appended += bytes.size();
  if (!log.dirty) {
    log.dirty = true;
    dirty_.push_back(id);
    unlist(log);
  }
  if (!log.pieces.empty() && log.pieces.back().joins(bytes)) {
    log.pieces.back().extend(bytes.size());
  } else {
    log.pieces.push_back(std::move(bytes));
  }
}

void Committer::report_writes(LogId id) { logs_[id].reports_writes = true; }

void Committer::want_barrier(LogId id, Instant not_before) {
  Log& log = logs_[id];
  log.wanted = log.appended;
  log.not_before = log.wants ? std::min(log.not_before, not_before) : not_before;
  if (!log.wants && log.durable < log.wanted) {
    log.wants = true;
    waiting_.push_back(id);
  }
}

void Committer::reset(LogId id) {
  Log& log = logs_[id];
  RQ_CHECK(idle(id));
  log.appended = log.submitted = log.written = log.covered = log.durable = log.wanted = 0;
}

void Committer::note_answered(std::uint32_t answered, Now now) {
  expected_ = answered;
  arrived_ = 0;
  hold_until_ = now.mono + kHoldNs;
}

void Committer::fail(const std::string& path, const io::Error& error) {
  if (!fault_) fault_ = Fault{path, std::nullopt, describe(error)};
}

void Committer::settle(Now now) {
  now_ = now.mono;
  if (fault_) return;
  submit_appends();
  start_barriers(now);
  std::erase_if(dirty_, [this](LogId id) { return !logs_[id].dirty; });
}

void Committer::submit_appends() {
  std::vector<LogId> again;
  retry_opens_ = false;
  for (LogId id : dirty_) {
    Log& log = logs_[id];
    if (log.retired) {
      log.dirty = false;
      drop_if_done(log);
      continue;
    }
    if (log.file == io::FileId::none) {
      again.push_back(id);
      if (!log.opening && !log.closing) open(log);
      continue;
    }
    if (log.closing || waits_for_its_barrier(log)) {
      again.push_back(id);
      continue;
    }
    submit(log);
  }
  dirty_.swap(again);
}

// An append that goes out ahead of its barrier is one more job and answers nobody; one large enough to be worth writing meanwhile
// is.
bool Committer::waits_for_its_barrier(const Log& log) const {
  return log.wants && !log.reports_writes && log.appended - log.submitted < kEarlyAppendBytes;
}

void Committer::open(Log& log) {
  if (handles_ >= handles_max_) evict_handle();
  log.opening = true;
  ++handles_;
  log.handle_op.done = &Committer::on_opened;
  log.handle_op.self = &log;
  host_.disk.open(log.handle_op, log.path, io::OpenMode::append);
}

void Committer::on_opened(io::Op& op) noexcept {
  Log& log = *static_cast<Log*>(op.self);
  Committer& c = *log.committer;
  log.opening = false;
  if (op.error) {
    --c.handles_;
    if (op.error.code == io::Errc::no_handles) {
      RQ_SOMETIMES(true, "committer: out of file handles, evict and retry");
      c.evict_handle();
      c.retry_opens_ = true;
    } else {
      c.fail(log.path, op.error);
    }
  } else {
    log.file = op.file();
    c.list_if_idle(log);
  }
  c.drop_if_done(log);
}

void Committer::unlist(Log& log) {
  if (!std::exchange(log.listed, false)) return;
  (log.older == nullptr ? oldest_ : log.older->newer) = log.newer;
  (log.newer == nullptr ? newest_ : log.newer->older) = log.older;
}

void Committer::list_if_idle(Log& log) {
  if (log.listed || log.file == io::FileId::none || log.closing || log.dirty || !idle(log.id)) return;
  log.listed = true;
  log.older = newest_;
  log.newer = nullptr;
  (newest_ == nullptr ? oldest_ : newest_->newer) = &log;
  newest_ = &log;
}

void Committer::evict_handle() {
  if (oldest_ == nullptr) return;
  RQ_SOMETIMES(true, "committer: an idle write handle is closed to make room");
  close_handle(*oldest_);
}

void Committer::close_handle(Log& log) {
  unlist(log);
  log.closing = true;
  log.handle_op.done = &Committer::on_closed;
  log.handle_op.self = &log;
  host_.disk.close(log.handle_op, log.file);
}

void Committer::on_closed(io::Op& op) noexcept {
  Log& log = *static_cast<Log*>(op.self);
  Committer& c = *log.committer;
  log.closing = false;
  log.file = io::FileId::none;
  --c.handles_;
  if (op.error && op.error.code != io::Errc::cancelled) c.fail(log.path, op.error);
  c.drop_if_done(log);
}

void Committer::drop_if_done(Log& log) {
  if (!log.retired || !log.used || log.in_flight > 0 || log.in_barrier || log.opening || log.closing) return;
  if (log.file != io::FileId::none) return close_handle(log);
  if (log.dirty || log.wants) return;  // still named in a list; dropped when that is walked
  log.used = false;
  log.pieces = {};
  log.path.clear();
  free_.push_back(log.id);
}

void Committer::submit(Log& log) {
  AppendJob* job;
  if (!free_append_jobs_.empty()) {
    job = free_append_jobs_.back();
    free_append_jobs_.pop_back();
  } else {
    append_jobs_.push_back(std::make_unique<AppendJob>());
    job = append_jobs_.back().get();
    job->committer = this;
    job->op.done = &Committer::on_appended;
    job->op.self = job;
  }
  job->log = log.id;
  job->pieces.swap(log.pieces);
  log.pieces.clear();
  job->bytes = 0;
  job->bufs.clear();
  for (const Slice& piece : job->pieces) {
    job->bufs.push_back(piece.bytes());
    job->bytes += piece.size();
  }
  log.dirty = false;
  log.submitted += job->bytes;
  RQ_CHECK(log.submitted == log.appended);
  ++log.in_flight;
  ++appends_;
  appended_bytes_ += job->bytes;
  host_.disk.append(job->op, log.file, job->bufs);
}

void Committer::on_appended(io::Op& op) noexcept {
  AppendJob& job = *static_cast<AppendJob*>(op.self);
  Committer& c = *job.committer;
  Log& log = c.logs_[job.log];
  --log.in_flight;
  if (op.error) {
    c.fail(log.path, op.error);
    locate(c.fault_, log.path, log.written);
  } else if (op.value != job.bytes) {
    c.fail(log.path, {io::Errc::io, 0, "append (short)"});
    locate(c.fault_, log.path, log.written + op.value);
  }
  log.written += op.value;  // appends to one file take effect in order
  if (log.reports_writes && !log.retired && !c.fault_) c.advances_.push_back({log.id, log.owner, log.sub, log.role});
  job.pieces.clear();
  c.free_append_jobs_.push_back(&job);
  c.list_if_idle(log);
  c.drop_if_done(log);
}

void Committer::start_barriers(Now now) {
  if (waiting_.empty()) return;
  std::vector<LogId> keep, small, large;
  std::uint64_t small_bytes = 0;
  bool publishes = false;
  for (LogId id : waiting_) {
    Log& log = logs_[id];
    if (!log.used || log.retired || log.durable >= log.wanted) {
      log.wants = false;
      drop_if_done(log);
      continue;
    }
    if (log.in_barrier || log.file == io::FileId::none || log.closing || now.mono < log.not_before) {
      keep.push_back(id);
      continue;
    }
    const std::uint64_t bytes = log.appended - log.covered;
    if (bytes > kLargeSetBytes) {
      large.push_back(id);
    } else {
      small.push_back(id);
      small_bytes += bytes;
      publishes = publishes || log.role == Role::segment;
    }
  }
  waiting_.swap(keep);
  const bool held = publishes && running_barriers_ == 0 && arrived_ < expected_ && now.mono < hold_until_;
  const bool with_large = small_bytes > kLargeSetBytes || !large.empty();
  const bool may_overlap = running_barriers_ == 0 || with_large || now.mono - last_start() >= kNextBarrierAfterNs ||
                           io::planted(host_, "overlap_at_once");
  if (!small.empty() && !held && may_overlap && running_barriers_ < kBarriersMax) {
    RQ_SOMETIMES(running_barriers_ > 0, "committer: a second barrier overlaps a slow one");
    start_barrier(small, with_large, now);
    small.clear();
  }
  while (!large.empty() && running_barriers_ < kBarriersMax) {
    start_barrier({large.back()}, true, now);
    large.pop_back();
  }
  waiting_.insert(waiting_.end(), small.begin(), small.end());
  waiting_.insert(waiting_.end(), large.begin(), large.end());
}

Instant Committer::last_start() const {
  Instant last{};
  for (const auto& job : barrier_jobs_)
    if (job->running) last = std::max(last, job->started);
  return last;
}

void Committer::start_barrier(const std::vector<LogId>& logs, bool with_large, Now now) {
  BarrierJob* job = nullptr;
  for (const auto& candidate : barrier_jobs_)
    if (!candidate->running) job = candidate.get();
  if (job == nullptr) {
    barrier_jobs_.push_back(std::make_unique<BarrierJob>());
    job = barrier_jobs_.back().get();
    job->committer = this;
    job->op.done = &Committer::on_barrier;
    job->op.self = job;
  }
  job->parts.clear();
  std::vector<io::BarrierFile> files;
  const bool forget_wals = io::planted(host_, "forget_wal_in_barrier");
  for (LogId id : logs) {
    Log& log = logs_[id];
    if (log.dirty) submit(log);
    log.wants = false;
    log.in_barrier = true;
    log.covered = log.submitted;
    job->parts.push_back({id, log.submitted});
    if (forget_wals && log.role == Role::wal) continue;
    files.push_back({log.file, io::Durability::data});
  }
  ++running_barriers_;
  ++barriers_;
  expected_ = 0;
  job->running = true;
  job->started = now.mono;
  job->may_overlap = with_large;
  host_.disk.barrier(job->op, files);
}

void Committer::on_barrier(io::Op& op) noexcept {
  BarrierJob& job = *static_cast<BarrierJob*>(op.self);
  Committer& c = *job.committer;
  job.running = false;
  --c.running_barriers_;
  const auto took_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, c.host_.clock.now() - job.started)) / 1'000;
  bool segments = false, wals = false;
  if (op.error) {
    const Log& first = c.logs_[job.parts.front().log];
    c.fail(first.path, op.error);
    locate(c.fault_, first.path, first.durable);
    if (job.parts.size() > 1 && c.fault_->file == first.path)
      c.fault_->what += " (a barrier over " + std::to_string(job.parts.size()) + " files)";
  }
  for (const BarrierJob::Part& part : job.parts) {
    Log& log = c.logs_[part.log];
    log.in_barrier = false;
    (log.role == Role::wal ? wals : segments) = true;
    if (!c.fault_ && !log.retired) {
      log.durable = part.covered;
      c.advances_.push_back({part.log, log.owner, log.sub, log.role});
      if (log.wanted > log.durable && !log.wants) {
        log.wants = true;
        c.waiting_.push_back(part.log);
      }
    }
    c.list_if_idle(log);
    c.drop_if_done(log);
  }
  if (segments) c.segment_barrier_us_.add_us(took_us);
  if (wals) c.wal_barrier_us_.add_us(took_us);
}

Instant Committer::next_deadline() const {
  if (fault_) return Instant::never();
  if (retry_opens_) return now_ + kMillisecond;
  if (waiting_.empty()) return Instant::never();
  // A point that has passed is not a deadline: what could start then did start, the rest waits for a completion.
  Instant next = Instant::never();
  if (running_barriers_ == 0 && arrived_ < expected_) next = hold_until_;
  if (running_barriers_ > 0 && running_barriers_ < kBarriersMax) next = last_start() + kNextBarrierAfterNs;
  if (next <= now_) next = Instant::never();
  for (const LogId id : waiting_)
    if (logs_[id].not_before > now_) next = std::min(next, logs_[id].not_before);
  return next;
}

void Committer::check_invariants() const {
  for (const Log& log : logs_)
    if (log.used) RQ_CHECK(log.durable <= log.covered && log.covered <= log.submitted && log.submitted <= log.appended);  // I1
  std::size_t running = 0;
  std::vector<LogId> covered;
  for (const auto& job : barrier_jobs_) {
    if (!job->running) continue;
    ++running;
    for (const BarrierJob::Part& part : job->parts) covered.push_back(part.log);
    for (const auto& other : barrier_jobs_)
      if (other != job && other->running && !job->may_overlap && other->started <= job->started)
        RQ_CHECK(job->started - other->started >= kNextBarrierAfterNs);  // I2
  }
  RQ_CHECK(running == running_barriers_ && running <= kBarriersMax);
  std::sort(covered.begin(), covered.end());
  RQ_CHECK(std::adjacent_find(covered.begin(), covered.end()) == covered.end());
}

}  // namespace rq::storage
