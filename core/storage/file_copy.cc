#include "core/storage/file_copy.h"

#include <algorithm>

#include "core/storage/script.h"

namespace rq::storage {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kBlockBytes = 4'096;

}  // namespace

void FileCopy::begin(std::string from, std::uint64_t at, std::string to) {
  *this = FileCopy();
  from_path_ = std::move(from);
  at_ = at;
  to_path_ = std::move(to);
}

bool FileCopy::fail(DiskCall call, const std::string& path, const io::Error& error) {
  if (!fault_) fault_ = Fault{path, std::nullopt, describe(error)};
  return end(call);
}

// Closes what is open; true when nothing is.
bool FileCopy::end(DiskCall call) {
  buffer_ = {};
  if (to_ != io::FileId::none) {
    state_ = State::close_to;
    call.disk.close(call.op, std::exchange(to_, io::FileId::none));
    return false;
  }
  if (from_ != io::FileId::none) {
    state_ = State::close_from;
    call.disk.close(call.op, std::exchange(from_, io::FileId::none));
    return false;
  }
  return true;
}

bool FileCopy::poll(DiskCall call) {
  const io::Error error = state_ == State::start ? io::Error{} : call.op.error;
  switch (state_) {
    case State::start:
      state_ = State::stat;
      call.disk.stat(call.op, from_path_, true, stat_);
      return false;
    case State::stat:
      if (error) return fail(call, from_path_, error);
      state_ = State::open_from;
      call.disk.open(call.op, from_path_, io::OpenMode::read);
      return false;
    case State::open_from:
      if (error) return fail(call, from_path_, error);
      from_ = call.op.file();
      state_ = State::open_to;
      call.disk.open(call.op, to_path_, io::OpenMode::create);
      return false;
    case State::open_to:
      if (error) return fail(call, to_path_, error);
      to_ = call.op.file();
      buffer_.resize(kPieceBytes);
      piece_bytes_ = kPieceBytes;
      break;
    case State::read:
      return take_read(call, error);
    case State::append:
      if (error) return fail(call, to_path_, error);
      if (call.op.value != got_) return fail(call, to_path_, {io::Errc::io, 0, "append (short)"});
      at_ += got_;
      if (at_ % kPieceBytes == 0) piece_bytes_ = kPieceBytes;
      break;
    case State::barrier:
      if (error) return fail(call, to_path_, error);
      return end(call);
    case State::close_to:
    case State::close_from:
      return end(call);
  }
  return read(call);
}

bool FileCopy::read(DiskCall call) {
  state_ = State::read;
  const std::uint64_t into_block = piece_bytes_ == kBlockBytes ? at_ % kBlockBytes : 0;
  call.disk.read(call.op, from_, at_, MutBuf(buffer_).first(piece_bytes_ - into_block));
  return false;
}

bool FileCopy::take_read(DiskCall call, const io::Error& error) {
  if (error && error.code != io::Errc::eof && at_ < stat_.bytes) {
    if (piece_bytes_ > kBlockBytes) {  // again in blocks, up to the end of the piece
      piece_bytes_ = kBlockBytes;
      return read(call);
    }
    got_ = std::min<std::uint64_t>(kBlockBytes - at_ % kBlockBytes, stat_.bytes - at_);
    unreadable_ += got_;
    std::fill_n(buffer_.begin(), got_, std::byte{0});
    return append(call);
  }
  got_ = error ? 0 : call.op.value;
  if (got_ > 0) return append(call);
  state_ = State::barrier;
  const io::BarrierFile file{to_, io::Durability::full};
  call.disk.barrier(call.op, {&file, 1});
  return false;
}

bool FileCopy::append(DiskCall call) {
  state_ = State::append;
  const ConstBuf piece = ConstBuf(buffer_).first(got_);
  call.disk.append(call.op, to_, {&piece, 1});
  return false;
}

}  // namespace rq::storage
