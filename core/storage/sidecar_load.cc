#include "core/storage/sidecar_load.h"

#include <algorithm>

#include "core/base/crc32c.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kEntriesPerRead = 16 * kMetadataPageEntries;

}  // namespace

void SidecarLoad::begin(std::string path, std::uint64_t file_bytes, std::uint64_t segment_bytes, LogIndex base,
                        SegmentVisitor* visitor) {
  *this = SidecarLoad();
  path_ = std::move(path);
  file_bytes_ = file_bytes;
  segment_bytes_ = segment_bytes;
  visitor_ = visitor;
  info_.base = base;
}

void SidecarLoad::read(DiskCall call, std::uint64_t at, std::uint64_t bytes) {
  want_ = bytes;
  at_ = at + bytes;
  buffer_.resize(bytes);
  call.disk.read(call.op, file_, at, buffer_);
}

bool SidecarLoad::poll(DiskCall call) {
  const bool short_read = state_ > State::open && state_ < State::close && (call.op.error || call.op.value != want_);
  if (short_read) defect_ = "read failed";
  switch (state_) {
    case State::start:
      if (file_bytes_ < kSidecarHeaderBytes || file_bytes_ > kSidecarBytesMax) {
        defect_ = "size";
        return true;
      }
      state_ = State::open;
      call.disk.open(call.op, path_, io::OpenMode::read);
      return false;
    case State::open:
      if (call.op.error) {
        defect_ = "cannot be opened";
        return true;
      }
      file_ = call.op.file();
      state_ = State::header;
      read(call, 0, kSidecarHeaderBytes);
      return false;
    case State::header:
      if (defect_ == nullptr) defect_ = decode_sidecar_header(buffer_, file_bytes_, segment_bytes_, header_);
      if (defect_ != nullptr) break;
      state_ = State::locations;
      next_piece(call);
      return false;
    case State::locations:
      body_crc_ = crc32c(buffer_, body_crc_);
      if (defect_ != nullptr) break;
      next_piece(call);
      return false;
    case State::metadata:
      body_crc_ = crc32c(buffer_, body_crc_);
      if (defect_ == nullptr) defect_ = decode_metadata_header(buffer_, header_, messages_);
      state_ = State::page;
      break;
    case State::page:
      body_crc_ = crc32c(buffer_, body_crc_);
      if (defect_ == nullptr) defect_ = take_page(buffer_);
      break;
    case State::close:
      return true;
  }
  if (defect_ == nullptr && next_ < messages_) {
    read(call, header_.entry_offset(next_), std::min(messages_ - next_, kEntriesPerRead) * kMetadataEntryBytes);
    return false;
  }
  if (defect_ == nullptr && body_crc_ != header_.body_crc) defect_ = "body checksum";
  if (defect_ == nullptr) {
    info_.first_index = header_.first_index;
    info_.record_count = header_.location_count;
    info_.bytes = segment_bytes_;
    info_.crc = header_.segment_crc;
    info_.message_count = messages_;
  }
  buffer_ = {};
  state_ = State::close;
  call.disk.close(call.op, file_);
  return false;
}

// The locations, and behind them the head of the metadata.
void SidecarLoad::next_piece(DiskCall call) {
  const std::uint64_t left = header_.metadata_offset() - at_;
  if (left > 0) return read(call, at_, std::min(left, kEntriesPerRead * kMetadataEntryBytes));
  state_ = State::metadata;
  read(call, at_, std::min<std::uint64_t>(kMetadataHeaderBytes, header_.metadata_bytes));
}

const char* SidecarLoad::take_page(ConstBuf page) {
  for (; !page.empty(); page = page.subspan(kMetadataEntryBytes)) {
    MessageMeta meta;
    if (const char* wrong = decode_metadata_entry(page, segment_bytes_, meta)) return wrong;
    if (const char* wrong = take_entry(meta)) return wrong;
    if (visitor_ != nullptr) visitor_->on_message(meta);
    ++next_;
  }
  return nullptr;
}

const char* SidecarLoad::take_entry(const MessageMeta& meta) {
  if (meta.log_index < std::max(header_.first_index, last_log_index_) || meta.log_index > header_.last_index)
    return "metadata record index";
  if (next_ == 0) {
    info_.first_position = meta.position;
    info_.first_id = meta.id;
    info_.first_timestamp_ns = meta.timestamp_ns;
    info_.min_available_at_ms = info_.max_available_at_ms = meta.available_at_ms;
  } else {
    if (meta.position != info_.last_position + 1) return "metadata positions";
    if (meta.id < info_.last_id) return "metadata ids";
  }
  last_log_index_ = meta.log_index;
  info_.last_position = meta.position;
  info_.last_id = meta.id;
  info_.last_timestamp_ns = meta.timestamp_ns;
  info_.min_available_at_ms = std::min(info_.min_available_at_ms, meta.available_at_ms);
  info_.max_available_at_ms = std::max(info_.max_available_at_ms, meta.available_at_ms);
  return nullptr;
}

}  // namespace rq::storage
