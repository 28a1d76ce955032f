#include "core/storage/script.h"

#include <fmt/format.h>

#include "core/base/probe.h"
#include "core/storage/paths.h"

namespace rq::storage {

std::string describe(const io::Error& error) {
  if (error.os != 0) return fmt::format("{}: {} (errno {})", error.op, io::errc_name(error.code), error.os);
  return fmt::format("{}: {}", error.op, io::errc_name(error.code));
}

Script::Script(io::Host& host, void* self, Done done, ScriptRetries* retries)
    : host_(host), self_(self), done_(done), retries_(retries) {
  for (io::Op& op : ops_) io::bind<&Script::on_done>(op, this);
}

Script::~Script() {
  if (retries_ != nullptr) retries_->forget(*this);
}

void ScriptRetries::run() {
  std::vector<Script*> scripts;
  scripts.swap(waiting_);
  for (Script* script : scripts) script->next();
}

void Script::add(Kind kind, std::string path, std::string other, std::uint64_t number) {
  RQ_CHECK(!running_);
  steps_.push_back({kind, std::move(path), std::move(other), number});
}

void Script::make_dir(std::string path) { add(Kind::make_dir, std::move(path)); }
void Script::sync_dir(std::string path) { add(Kind::sync_dir, std::move(path)); }
void Script::unlink(std::string path) { add(Kind::unlink, std::move(path)); }
void Script::remove_dir(std::string path) { add(Kind::remove_dir, std::move(path)); }
void Script::remove_files(std::string dir) { add(Kind::list, std::move(dir)); }

void Script::write_new(std::string path, std::string content) {
  add(Kind::open_create, path);
  if (!content.empty()) add(Kind::append, path, std::move(content));
  add(Kind::barrier_own, path);
  add(Kind::close, std::move(path));
}

void Script::write_new_later(std::string path) {
  add(Kind::open_create, path);
  add(Kind::hold, {});
  add(Kind::append, path);
  add(Kind::barrier_own, path);
  add(Kind::close, std::move(path));
}

void Script::create_new(std::string path) {
  add(Kind::open_new, path);
  add(Kind::barrier_own, path);
  add(Kind::close, std::move(path));
}

void Script::replace_file(std::string path, std::string content) {
  std::string temporary = temporary_of(path);
  write_new(temporary, std::move(content));
  add(Kind::rename, std::move(temporary), path);
  add(Kind::sync_dir, parent_of(path));
}

void Script::replace_file(std::string path, std::unique_ptr<ScriptContent> content) {
  const std::string temporary = temporary_of(path);
  add(Kind::open_create, temporary);
  add(Kind::close, temporary);
  add(Kind::open_rewrite, temporary);
  add(Kind::pieces, temporary, {}, contents_.size());
  contents_.push_back(std::move(content));
  add(Kind::barrier_own, temporary);
  add(Kind::close, temporary);
  add(Kind::rename, temporary, path);
  add(Kind::sync_dir, parent_of(path));
}

void Script::rename(std::string from, std::string to) { add(Kind::rename, std::move(from), std::move(to)); }

void Script::truncate(std::string path, std::uint64_t bytes) {
  add(Kind::open_rewrite, path);
  add(Kind::truncate, path, {}, bytes);
  add(Kind::barrier_own, path);
  add(Kind::close, std::move(path));
}

void Script::append_to(std::string path, std::string content) {
  add(Kind::open_append, path);
  add(Kind::append, path, std::move(content));
  add(Kind::barrier_own, path);
  add(Kind::close, std::move(path));
}

void Script::barrier(io::FileId file) { add(Kind::barrier_other, {}, {}, static_cast<std::uint64_t>(file)); }

void Script::rewrite(io::FileId file, std::uint64_t at, std::string content) {
  RQ_CHECK(at == 0);
  add(Kind::rewrite, {}, std::move(content), static_cast<std::uint64_t>(file));
  add(Kind::barrier_other, {}, {}, static_cast<std::uint64_t>(file));
}

void Script::hold() { add(Kind::hold, {}); }

void Script::start() {
  RQ_CHECK(!running_ && at_ == 0);
  if (steps_.empty()) add(Kind::nothing, {});
  running_ = true;
  next();
}

void Script::release(std::size_t holds) {
  released_ = std::max(released_, holds);
  if (!held_ || holds_ > released_) return;
  held_ = false;
  ++at_;
  next();
}

void Script::supply(std::string content) {
  RQ_CHECK(held_ && steps_[at_ + 1].kind == Kind::append);
  steps_[at_ + 1].other = std::move(content);
}

void Script::next() {
  for (; steps_[at_].kind == Kind::hold; ++at_) {
    held_ = ++holds_ > released_;
    if (!held_) continue;
    if (when_held_ != nullptr) when_held_(self_, *this);
    return;
  }
  const Step& step = steps_[at_];
  if (own_ != io::FileId::none && step.kind != Kind::pieces) return run_on_own_file();
  io::Op& op = ops_.front();
  op.tag = at_;
  ++in_flight_;
  run(op, step);
}

// Everything up to the close of the file, in one go.
void Script::run_on_own_file() {
  std::size_t end = at_;
  while (steps_[end++].kind != Kind::close) {
  }
  const std::size_t first = std::exchange(at_, end - 1);
  RQ_CHECK(end - first <= kOpsMax);
  in_flight_ = end - first;
  for (std::size_t i = first; i < end; ++i) {
    io::Op& op = ops_[i - first];
    op.tag = i;
    run(op, steps_[i]);
  }
}

void Script::run(io::Op& op, const Step& step) {
  switch (step.kind) {
    case Kind::make_dir:
      return host_.disk.make_dir(op, step.path);
    case Kind::sync_dir:
      if (io::planted(host_, "skip_directory_sync")) return host_.disk.barrier(op, {});
      return host_.disk.sync_dir(op, step.path);
    case Kind::unlink:
      return host_.disk.unlink(op, step.path);
    case Kind::remove_dir:
      return host_.disk.remove_dir(op, step.path);
    case Kind::list:
      entries_.clear();
      return host_.disk.list(op, step.path, entries_);
    case Kind::open_create:
      return host_.disk.open(op, step.path, io::OpenMode::create);
    case Kind::open_new:
      return host_.disk.open(op, step.path, io::OpenMode::append_new);
    case Kind::open_rewrite:
      return host_.disk.open(op, step.path, io::OpenMode::rewrite);
    case Kind::open_append:
      return host_.disk.open(op, step.path, io::OpenMode::append);
    case Kind::append: {
      const ConstBuf content = bytes_of(step.other);
      return host_.disk.append(op, own_, {&content, 1});
    }
    case Kind::truncate:
      return host_.disk.truncate(op, own_, step.number);
    case Kind::barrier_own: {
      const io::BarrierFile file{own_, io::Durability::full};
      return host_.disk.barrier(op, {&file, 1});
    }
    case Kind::barrier_other: {
      const io::BarrierFile file{static_cast<io::FileId>(step.number), io::Durability::full};
      return host_.disk.barrier(op, {&file, 1});
    }
    case Kind::rewrite:
      return host_.disk.rewrite(op, static_cast<io::FileId>(step.number), 0, bytes_of(step.other));
    case Kind::pieces: {
      std::uint64_t at = 0;
      if (contents_[step.number]->next(at, piece_)) return host_.disk.rewrite(op, own_, at, bytes_of(piece_));
      contents_[step.number].reset();
      piece_ = {};
      ++at_;
      --in_flight_;
      return next();
    }
    case Kind::close:
      return host_.disk.close(op, std::exchange(own_, io::FileId::none));
    case Kind::rename:
      return host_.disk.rename(op, step.path, step.other);
    case Kind::hold:
    case Kind::nothing:
      return host_.disk.barrier(op, {});
  }
}

void Script::on_done(io::Op& op) {
  const std::size_t at = static_cast<std::size_t>(op.tag);
  const Kind kind = steps_[at].kind;
  --in_flight_;
  if (op.error.code == io::Errc::no_handles && retries_ != nullptr) {
    RQ_SOMETIMES(true, "script: out of file handles, tried again");
    retries_->add(*this);
    return;
  }
  const bool missing_is_fine = kind == Kind::unlink || kind == Kind::remove_dir || kind == Kind::list;
  const bool kept = kind == Kind::remove_dir && op.error.code == io::Errc::exists;
  if (op.error && !kept && !(missing_is_fine && op.error.code == io::Errc::not_found)) {
    fail(at, op.error);
  } else if (!op.error) {
    on_success(op, at);
  }
  if (in_flight_ > 0) return;
  if (error_ && own_ != io::FileId::none) {  // a piece failed
    ++in_flight_;
    host_.disk.close(op, std::exchange(own_, io::FileId::none));
    return;
  }
  if (!error_ && kind == Kind::pieces) return next();
  ++at_;
  if (!error_ && at_ < steps_.size()) return next();
  running_ = false;
  done_(self_, *this);
}

void Script::on_success(const io::Op& op, std::size_t at) {
  const Step& step = steps_[at];
  switch (step.kind) {
    case Kind::open_create:
    case Kind::open_new:
    case Kind::open_rewrite:
    case Kind::open_append:
      own_ = op.file();
      return;
    case Kind::append:
      if (op.value != step.other.size()) fail(at, {io::Errc::io, 0, "append (short)"});
      return;
    case Kind::list: {
      std::vector<Step> unlinks;
      for (const io::DirEntry& entry : entries_)
        if (entry.kind != io::FileKind::directory) unlinks.push_back({Kind::unlink, step.path + "/" + entry.name, {}, 0});
      steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(at) + 1, unlinks.begin(), unlinks.end());
      return;
    }
    default:
      return;
  }
}

// The first step that failed counts.
void Script::fail(std::size_t at, const io::Error& error) {
  RQ_SOMETIMES(true, "script: a step fails");
  if (error_ && failed_at_ <= at) return;
  error_ = error;
  failed_at_ = at;
}

Fault Script::fault() const { return {steps_[failed_at_].path, std::nullopt, describe(error_)}; }

}  // namespace rq::storage
