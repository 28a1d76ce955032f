#include "core/storage/tail_sync.h"

#include <algorithm>

#include "core/storage/script.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;

}  // namespace

void TailSync::fail(const io::Error& error) {
  if (!fault_) fault_ = Fault{state_ == State::barrier ? batch_path_ : tail_->path, std::nullopt, describe(error)};
}

bool TailSync::poll(DiskCall call) {
  const io::Error error = state_ == State::idle ? io::Error{} : call.op.error;
  switch (state_) {
    case State::idle:
      return open_next(call);
    case State::open:
      if (error.code == io::Errc::no_handles && !files_.empty()) return flush(call);  // tail_ is tried again
      if (error.code == io::Errc::no_handles) {
        starved_ = Fault{tail_->path, std::nullopt, describe(error)};
        tails_.push_back(*tail_);
        return true;
      }
      if (error) {
        fail(error);
        return flush(call);
      }
      if (files_.empty()) batch_path_ = tail_->path;
      files_.push_back({call.op.file(), io::Durability::full});
      at_ = tail_->rewrite_from;
      if (!tail_->cut) return go_on(call);
      state_ = State::cut;
      call.disk.truncate(call.op, files_.back().file, tail_->bytes);
      return false;
    case State::read:
      if (error || call.op.value != piece_) {
        fail(error ? error : io::Error{io::Errc::eof, 0, "read"});
        return flush(call);
      }
      state_ = State::rewrite;
      call.disk.rewrite(call.op, files_.back().file, at_, ConstBuf(buffer_).first(piece_));
      return false;
    case State::cut:
    case State::rewrite:
      if (error) {
        fail(error);
        return flush(call);
      }
      if (state_ == State::rewrite) at_ += piece_;
      return go_on(call);
    case State::add:
      if (error) {
        fail(error);
        return flush(call);
      }
      tail_ = nullptr;
      return open_next(call);
    case State::barrier:
      if (error) fail(error);
      return close_one(call);
    case State::close:
      return files_.empty() ? open_next(call) : close_one(call);
  }
  return true;
}

bool TailSync::open_next(DiskCall call) {
  if (fault_ || files_.size() >= kTailBatchFiles) return flush(call);
  if (tail_ == nullptr) {
    if (next_ == tails_.size()) return flush(call);
    tail_ = &tails_[next_++];
  }
  state_ = State::open;
  call.disk.open(call.op, tail_->path, io::OpenMode::rewrite);
  return false;
}

bool TailSync::go_on(DiskCall call) {
  if (at_ < tail_->bytes) {
    piece_ = std::min(tail_->bytes - at_, kPieceBytes);
    buffer_.resize(std::max<std::size_t>(buffer_.size(), piece_));
    state_ = State::read;
    call.disk.read(call.op, files_.back().file, at_, MutBuf(buffer_).first(piece_));
    return false;
  }
  if (!tail_->added.empty()) {
    state_ = State::add;
    call.disk.rewrite(call.op, files_.back().file, tail_->bytes, bytes_of(tail_->added));
    return false;
  }
  tail_ = nullptr;
  return open_next(call);
}

bool TailSync::flush(DiskCall call) {
  if (files_.empty()) return true;
  if (fault_) return close_one(call);
  state_ = State::barrier;
  call.disk.barrier(call.op, files_);
  return false;
}

bool TailSync::close_one(DiskCall call) {
  const io::FileId file = files_.back().file;
  files_.pop_back();
  state_ = State::close;
  call.disk.close(call.op, file);
  return false;
}

}  // namespace rq::storage
