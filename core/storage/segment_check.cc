#include "core/storage/segment_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/crc32c.h"
#include "core/storage/script.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;

}  // namespace

void SegmentCheck::begin(std::string segment_path, std::string sidecar_path, const SegmentInfo& recorded) {
  *this = SegmentCheck();
  segment_path_ = std::move(segment_path);
  sidecar_path_ = std::move(sidecar_path);
  recorded_ = recorded;
}

void SegmentCheck::give_up() {
  given_up_ = true;
  if (state_ == State::scan) scan_.stop();
}

bool SegmentCheck::finish() {
  state_ = State::end;
  return true;
}

bool SegmentCheck::fail(const std::string& path, std::optional<std::uint64_t> offset, std::string what) {
  if (!fault_) fault_ = Fault{path, offset, std::move(what)};
  return finish();
}

bool SegmentCheck::failed_call(const std::string& path, const io::Error& error) {
  if (error.code != io::Errc::no_handles)
    return fail(path, std::nullopt,
                fmt::format("{} (positions {} to {})", describe(error), recorded_.first_position, recorded_.last_position));
  out_of_handles_ = true;
  return finish();
}

bool SegmentCheck::poll(DiskCall call) {
  if (given_up_ && state_ != State::scan && file_ == io::FileId::none && state_ != State::sidecar_open) return finish();
  switch (state_) {
    case State::start:
      state_ = State::stat;
      call.disk.stat(call.op, segment_path_, true, stat_);
      return false;
    case State::stat:
      return take_stat(call);
    case State::scan:
      return take_scan(call);
    case State::sidecar_stat:
      return take_sidecar_stat(call);
    case State::sidecar_open:
      if (call.op.error) return failed_call(sidecar_path_, call.op.error);
      file_ = call.op.file();
      buffer_.resize(std::min(stat_.bytes, kPieceBytes));
      state_ = State::sidecar_read;
      read_sidecar(call);
      return false;
    case State::sidecar_read:
      return take_sidecar_piece(call);
    case State::sidecar_close:
    case State::end:
      return finish();
  }
  return true;
}

bool SegmentCheck::take_stat(DiskCall call) {
  if (call.op.error) return failed_call(segment_path_, call.op.error);
  if (stat_.bytes != recorded_.bytes)
    return fail(segment_path_, std::min(stat_.bytes, recorded_.bytes),
                fmt::format("sealed with {} bytes, has {} (positions {} to {})", recorded_.bytes, stat_.bytes,
                            recorded_.first_position, recorded_.last_position));
  scan_.begin(segment_path_, stat_.bytes, recorded_.base, false, nullptr);
  state_ = State::scan;
  return take_scan(call);
}

bool SegmentCheck::take_scan(DiskCall call) {
  if (!scan_.poll(call)) return false;
  if (given_up_) return finish();
  if (scan_.out_of_handles()) {
    out_of_handles_ = true;
    return finish();
  }
  const SegmentInfo& found = scan_.info();
  if (scan_.fault()) {
    const Position at = std::max(scan_.position_before_record() + 1, recorded_.first_position);
    return fail(segment_path_, scan_.fault()->offset, fmt::format("{} (position {})", scan_.fault()->what, at));
  }
  const std::string range = fmt::format("(positions {} to {})", recorded_.first_position, recorded_.last_position);
  if (found.crc != recorded_.crc)
    return fail(segment_path_, 0,
                fmt::format("checksum of the file is {:08x}, sealed with {:08x} {}", found.crc, recorded_.crc, range));
  if (found.record_count != recorded_.record_count || found.message_count != recorded_.message_count)
    return fail(segment_path_, 0, "holds other records than when it was sealed " + range);
  state_ = State::sidecar_stat;
  call.disk.stat(call.op, sidecar_path_, true, stat_);
  return false;
}

bool SegmentCheck::take_sidecar_stat(DiskCall call) {
  if (call.op.error) return failed_call(sidecar_path_, call.op.error);
  const std::uint64_t wanted = sidecar_bytes(recorded_.record_count, recorded_.message_count);
  if (stat_.bytes != wanted)
    return fail(sidecar_path_, std::min(stat_.bytes, wanted), fmt::format("{} bytes instead of {}", stat_.bytes, wanted));
  state_ = State::sidecar_open;
  call.disk.open(call.op, sidecar_path_, io::OpenMode::read);
  return false;
}

void SegmentCheck::read_sidecar(DiskCall call) {
  call.disk.read(call.op, file_, sidecar_read_,
                 MutBuf(buffer_).first(std::min<std::uint64_t>(buffer_.size(), stat_.bytes - sidecar_read_)));
}

bool SegmentCheck::take_sidecar_piece(DiskCall call) {
  const auto wrong = [this](std::uint64_t offset, std::string what) {
    if (!fault_) fault_ = Fault{sidecar_path_, offset, std::move(what)};
  };
  if (given_up_) {
    // Only the close is left.
  } else if (call.op.error) {
    wrong(sidecar_read_, describe(call.op.error));
  } else if (call.op.value == 0) {
    wrong(sidecar_read_, "file became shorter while it was read");
  } else {
    ConstBuf piece = ConstBuf(buffer_).first(call.op.value);
    if (sidecar_read_ == 0) {
      const std::size_t head = std::min<std::size_t>(kSidecarHeaderBytes, piece.size());
      const char* defect = head < kSidecarHeaderBytes
                               ? "header ends early"
                               : decode_sidecar_header(piece.first(head), stat_.bytes, recorded_.bytes, header_);
      if (defect != nullptr) {
        wrong(0, std::string("sidecar header: ") + defect);
      } else if (header_.segment_crc != recorded_.crc) {
        wrong(16, "sidecar of another segment: segment checksum mismatch");
      }
      sidecar_read_ += head;
      piece = piece.subspan(head);
    }
    body_crc_ = crc32c(piece, body_crc_);
    sidecar_read_ += piece.size();
    if (!fault_ && sidecar_read_ < stat_.bytes) {
      read_sidecar(call);
      return false;
    }
    if (!fault_ && body_crc_ != header_.body_crc) wrong(kSidecarHeaderBytes, "checksum of the sidecar's body does not match");
  }
  buffer_ = {};
  state_ = State::sidecar_close;
  call.disk.close(call.op, std::exchange(file_, io::FileId::none));
  return false;
}

}  // namespace rq::storage
