#include "core/storage/segment_scan.h"

#include <algorithm>

#include "core/storage/script.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;
constexpr std::uint64_t kBlockBytes = 4'096;
constexpr std::string_view kNextRecord = "RQV7\x07";  // magic and version
constexpr std::size_t kNextRecordBytes = 16;          // up to its index

}  // namespace

void SegmentScan::begin(std::string path, std::uint64_t file_bytes, LogIndex base, bool last, SegmentVisitor* visitor) {
  *this = SegmentScan();
  path_ = std::move(path);
  file_bytes_ = file_bytes;
  last_ = last;
  visitor_ = visitor;
  info_.base = base;
}

void SegmentScan::fail(std::uint64_t offset, std::string what) {
  if (!fault_) fault_ = Fault{{}, offset, std::move(what)};
  stop_ = true;
}

bool SegmentScan::poll(DiskCall call) {
  switch (state_) {
    case State::start:
      if (file_bytes_ == 0) return true;
      state_ = State::open;
      call.disk.open(call.op, path_, io::OpenMode::read);
      return false;
    case State::open:
      if (call.op.error) {
        fault_ = Fault{{}, std::nullopt, describe(call.op.error)};
        out_of_handles_ = call.op.error.code == io::Errc::no_handles;
        return true;
      }
      file_ = call.op.file();
      buffer_.resize(std::min(file_bytes_, kPieceBytes));
      state_ = State::read;
      break;
    case State::read:
      if (stop_) break;
      if (call.op.error && buffer_.size() > kBlockBytes) {
        buffer_.resize(kBlockBytes);  // block by block, so that what stands before the damage counts and the place is known
      } else if (call.op.error) {
        fail(read_, describe(call.op.error));
      } else if (call.op.value == 0) {
        fail(read_, "file became shorter while it was read");
      } else {
        const std::uint64_t bytes = std::min(call.op.value, file_bytes_ - read_);
        take(ConstBuf(buffer_).first(bytes));
        read_ += bytes;
      }
      break;
    case State::close:
      return true;
  }
  if (!stop_ && read_ < file_bytes_) {
    call.disk.read(call.op, file_, read_, MutBuf(buffer_).first(std::min<std::uint64_t>(buffer_.size(), file_bytes_ - read_)));
    return false;
  }
  buffer_ = {};
  state_ = State::close;
  call.disk.close(call.op, file_);
  return false;
}

void SegmentScan::take(ConstBuf piece) {
  while (!piece.empty() && !stop_) {
    if (searching_) return search(piece);
    if (payload_left_ > 0) {
      const ConstBuf part = piece.first(std::min<std::uint64_t>(payload_left_, piece.size()));
      record_crc_ = crc32c(part, record_crc_);
      segment_crc_ = crc32c(part, segment_crc_);
      if (parser_) parser_->feed(part, [this](const BatchItem& item) { on_item(item); });
      payload_left_ -= part.size();
      piece = piece.subspan(part.size());
      if (payload_left_ == 0) end_record();
      continue;
    }
    const std::uint64_t left = file_bytes_ - record_offset_;
    const std::uint64_t want = std::min<std::uint64_t>(kRecordHeaderBytes, left);
    const std::size_t taken = std::min<std::size_t>(want - header_have_, piece.size());
    std::memcpy(header_bytes_ + header_have_, piece.data(), taken);
    header_have_ += static_cast<std::uint32_t>(taken);
    piece = piece.subspan(taken);
    if (header_have_ == want) on_header();
  }
}

void SegmentScan::on_header() {
  position_before_ = info_.last_position;
  const RecordScan scan = scan_record_header(ConstBuf(header_bytes_).first(header_have_), file_bytes_ - record_offset_, header_);
  if (scan == RecordScan::torn && last_) {
    torn_ = true;
    searching_ = header_have_ == kRecordHeaderBytes;
    stop_ = !searching_;
    return;
  }
  if (scan != RecordScan::record) return fail(record_offset_, record_scan_text(scan));
  header_have_ = 0;
  record_crc_ = header_.header_crc;
  segment_crc_ = crc32c(ConstBuf(header_bytes_), info_.crc);
  payload_left_ = header_.payload_bytes;
  item_defect_ = nullptr;
  parser_.reset();
  if (header_.kind == RecordKind::publish_batch) parser_.emplace(header_);
  if (payload_left_ == 0) end_record();
}

void SegmentScan::search(ConstBuf piece) {
  const LogIndex wanted = (info_.record_count == 0 ? header_.index : info_.first_index + info_.record_count) + 1;
  searched_.append(text_of(piece));
  for (std::size_t at = searched_.find(kNextRecord); at != std::string::npos; at = searched_.find(kNextRecord, at + 1)) {
    if (searched_.size() - at < kNextRecordBytes) break;
    if (load64(bytes_of(searched_).data() + at + 8) != wanted) continue;
    torn_ = false;
    return fail(record_offset_, "length of the record is damaged: the next record stands inside it");
  }
  if (searched_.size() >= kNextRecordBytes) searched_.erase(0, searched_.size() - (kNextRecordBytes - 1));
}

void SegmentScan::on_item(const BatchItem& item) {
  if (item_defect_ != nullptr) return;
  if (item.position == 0 || item.id == 0) {
    item_defect_ = "message with position or id 0";
  } else if (item.body_bytes == 0) {
    item_defect_ = "message without body";
  } else if (info_.message_count > 0 && item.position != info_.last_position + 1) {
    item_defect_ = "position does not follow the one before";
  } else if (info_.message_count > 0 && item.id < info_.last_id) {
    item_defect_ = "message id below the one before";
  }
  if (item_defect_ != nullptr) return;
  if (info_.message_count == 0) {
    info_.first_position = item.position;
    info_.first_id = item.id;
    info_.first_timestamp_ns = header_.timestamp_ns;
    info_.min_available_at_ms = info_.max_available_at_ms = header_.available_at_ms;
  }
  info_.last_position = item.position;
  info_.last_id = item.id;
  info_.last_timestamp_ns = header_.timestamp_ns;
  info_.min_available_at_ms = std::min(info_.min_available_at_ms, header_.available_at_ms);
  info_.max_available_at_ms = std::max(info_.max_available_at_ms, header_.available_at_ms);
  ++info_.message_count;
  if (visitor_ != nullptr)
    visitor_->on_message({item.position, item.id, header_.timestamp_ns, header_.available_at_ms, header_.index,
                          record_offset_ + kRecordHeaderBytes + item.payload_offset, item.body_bytes, item.body_crc});
}

void SegmentScan::end_record() {
  if (record_crc_ != header_.crc) return fail(record_offset_, record_scan_text(RecordScan::bad_crc));
  if (parser_) {
    if (const char* defect = parser_->finish()) return fail(record_offset_, defect);
  }
  if (item_defect_ != nullptr) return fail(record_offset_, item_defect_);
  if (header_.index == 0) return fail(record_offset_, "record index 0");
  if (info_.record_count == 0) {
    info_.first_index = header_.index;
  } else if (header_.index != info_.first_index + info_.record_count) {
    return fail(record_offset_, "record index " + std::to_string(header_.index) + " does not follow " +
                                    std::to_string(info_.first_index + info_.record_count - 1));
  }
  ++info_.record_count;
  if (visitor_ != nullptr) visitor_->on_record({header_.index, record_offset_, header_.encoded_bytes()});
  previous_record_ = last_record_;
  last_record_ = record_offset_;
  record_offset_ += header_.encoded_bytes();
  info_.bytes = record_offset_;
  info_.crc = segment_crc_;
}

}  // namespace rq::storage
