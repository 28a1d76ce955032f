// Reads a segment file from its first byte to its last and checks everything (page 20 sections 3, 8.2): records, checksums,
// batches, and that indexes, positions and ids go on without a jump. Memory does not depend on the size of file or record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/file_read.h"
#include "core/storage/image.h"
#include "core/storage/record.h"

namespace rq::storage {

// Gets what a segment holds, in order. Calls may come before the record's checksum was verified: when the scan ends in a fault,
// what was collected is void.
class SegmentVisitor {
 public:
  virtual void on_record(const RecordIndex&) {}
  virtual void on_message(const MessageMeta&) {}

 protected:
  ~SegmentVisitor() = default;
};

class SegmentScan {
 public:
  // A torn tail of the last segment is where the file will be cut; anywhere else it is a fault. So is a record that reaches past
  // the end of the file with the next record inside: its length is damaged, and what follows was acknowledged.
  void begin(std::string path, std::uint64_t file_bytes, LogIndex base, bool last, SegmentVisitor* visitor);
  bool poll(DiskCall call);
  void stop() { stop_ = true; }  // the next polls only close the file; the result is void
  std::uint64_t bytes_read() const { return read_; }
  Position position_before_record() const { return position_before_; }  // of the record where the scan is, 0 in the first one

  // After the end. `info().bytes` is the length up to the torn tail.
  const SegmentInfo& info() const { return info_; }
  bool torn() const { return torn_; }
  std::uint64_t last_records_offset() const { return previous_record_; }  // where the last two records start
  const std::optional<Fault>& fault() const { return fault_; }            // `file` is empty: the caller knows it
  bool out_of_handles() const { return out_of_handles_; }                 // that is the fault

 private:
  enum class State : std::uint8_t { start, open, read, close };
  void take(ConstBuf piece);
  void search(ConstBuf piece);
  void on_header();
  void on_item(const BatchItem& item);
  void end_record();
  void fail(std::uint64_t offset, std::string what);

  State state_ = State::start;
  std::string path_;
  std::uint64_t file_bytes_ = 0;
  bool last_ = false;
  SegmentVisitor* visitor_ = nullptr;
  io::FileId file_ = io::FileId::none;
  std::vector<std::byte> buffer_;
  std::uint64_t read_ = 0;  // bytes read so far
  bool stop_ = false;

  std::byte header_bytes_[kRecordHeaderBytes];
  std::uint32_t header_have_ = 0;
  RecordHeader header_;
  std::optional<BatchParser> parser_;
  const char* item_defect_ = nullptr;
  std::uint64_t payload_left_ = 0;
  std::uint64_t record_offset_ = 0;
  Position position_before_ = 0;
  std::uint64_t previous_record_ = 0;
  std::uint64_t last_record_ = 0;
  std::uint32_t record_crc_ = 0;
  std::uint32_t segment_crc_ = 0;

  SegmentInfo info_;
  bool torn_ = false;
  bool searching_ = false;  // behind the header of a torn record
  std::string searched_;    // the bytes that may start what is searched for
  bool out_of_handles_ = false;
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
