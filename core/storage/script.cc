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
  io::bind<&Script::on_done>(op_, this);
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

void Script::start() {
  RQ_CHECK(!running_ && at_ == 0);
  if (steps_.empty()) add(Kind::nothing, {});
  running_ = true;
  next();
}

void Script::next() {
  const Step& step = steps_[at_];
  switch (step.kind) {
    case Kind::make_dir:
      return host_.disk.make_dir(op_, step.path);
    case Kind::sync_dir:
      if (io::planted(host_, "skip_directory_sync")) return host_.disk.barrier(op_, {});
      return host_.disk.sync_dir(op_, step.path);
    case Kind::unlink:
      return host_.disk.unlink(op_, step.path);
    case Kind::remove_dir:
      return host_.disk.remove_dir(op_, step.path);
    case Kind::list:
      entries_.clear();
      return host_.disk.list(op_, step.path, entries_);
    case Kind::open_create:
      return host_.disk.open(op_, step.path, io::OpenMode::create);
    case Kind::open_new:
      return host_.disk.open(op_, step.path, io::OpenMode::append_new);
    case Kind::open_rewrite:
      return host_.disk.open(op_, step.path, io::OpenMode::rewrite);
    case Kind::open_append:
      return host_.disk.open(op_, step.path, io::OpenMode::append);
    case Kind::append: {
      const ConstBuf content = bytes_of(step.other);
      return host_.disk.append(op_, own_, {&content, 1});
    }
    case Kind::truncate:
      return host_.disk.truncate(op_, own_, step.number);
    case Kind::barrier_own: {
      const io::BarrierFile file{own_, io::Durability::full};
      return host_.disk.barrier(op_, {&file, 1});
    }
    case Kind::barrier_other: {
      const io::BarrierFile file{static_cast<io::FileId>(step.number), io::Durability::full};
      return host_.disk.barrier(op_, {&file, 1});
    }
    case Kind::rewrite:
      return host_.disk.rewrite(op_, static_cast<io::FileId>(step.number), 0, bytes_of(step.other));
    case Kind::pieces: {
      std::uint64_t at = 0;
      if (contents_[step.number]->next(at, piece_)) return host_.disk.rewrite(op_, own_, at, bytes_of(piece_));
      contents_[step.number].reset();
      piece_ = {};
      ++at_;
      return next();
    }
    case Kind::close:
      return host_.disk.close(op_, std::exchange(own_, io::FileId::none));
    case Kind::rename:
      return host_.disk.rename(op_, step.path, step.other);
    case Kind::nothing:
      return host_.disk.barrier(op_, {});
  }
}

void Script::on_done(io::Op& op) {
  const std::size_t at = at_;
  const Kind kind = steps_[at].kind;
  if (op.error.code == io::Errc::no_handles && retries_ != nullptr) {
    RQ_SOMETIMES(true, "script: out of file handles, tried again");
    retries_->add(*this);
    return;
  }
  if (op.error) {
    const bool missing_is_fine = kind == Kind::unlink || kind == Kind::remove_dir || kind == Kind::list;
    if (error_) {
      // A close after the failure; the first error counts.
    } else if (!(missing_is_fine && op.error.code == io::Errc::not_found)) {
      RQ_SOMETIMES(true, "script: a step fails");
      error_ = op.error;
      failed_path_ = steps_[at].path;
    }
  } else if (kind == Kind::open_create || kind == Kind::open_new || kind == Kind::open_rewrite || kind == Kind::open_append) {
    own_ = op.file();
  } else if (kind == Kind::append && op.value != steps_[at].other.size()) {
    error_ = {io::Errc::io, 0, "append (short)"};
    failed_path_ = steps_[at].path;
  } else if (kind == Kind::list) {
    std::vector<Step> unlinks;
    for (const io::DirEntry& entry : entries_)
      if (entry.kind != io::FileKind::directory) unlinks.push_back({Kind::unlink, steps_[at].path + "/" + entry.name, {}, 0});
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(at) + 1, unlinks.begin(), unlinks.end());
  }
  if (error_ && own_ != io::FileId::none) {
    host_.disk.close(op_, std::exchange(own_, io::FileId::none));
    return;
  }
  if (!error_ && kind == Kind::pieces) return next();
  ++at_;
  if (!error_ && at_ < steps_.size()) return next();
  running_ = false;
  done_(self_, *this);
}

Fault Script::fault() const { return {failed_path_, std::nullopt, describe(error_)}; }

}  // namespace rq::storage
