// Sealing the active segment of a TopicLog: the steps, and its sidecar piece by piece from the index in memory (page 20
// section 3.5 and 4).
#include "core/base/probe.h"
#include "core/storage/sidecar.h"
#include "core/storage/topic_log.h"

namespace rq::storage {

// The index of the log does not change while the script runs.
class TopicLog::SidecarContent final : public ScriptContent {
 public:
  explicit SidecarContent(const TopicLog& log) : log_(log), pieces_(log.records_.size(), log.messages_.size()) {}

  bool next(std::uint64_t& at, std::string& piece) override {
    for (; record_ < log_.records_.size() && pieces_.pending_bytes() < SidecarPieces::kPieceBytes; ++record_)
      pieces_.add_record(
          {log_.active_.first_index + record_, log_.records_[record_].offset, end(record_) - log_.records_[record_].offset});
    MessageMeta meta;
    for (; message_ < log_.messages_.size() && pieces_.pending_bytes() < SidecarPieces::kPieceBytes; ++message_) {
      while (holder_ + 1 < log_.records_.size() && log_.records_[holder_ + 1].first_message <= message_) ++holder_;
      log_.meta_in_record(holder_, message_, meta);
      pieces_.add_message(meta);
    }
    if (pieces_.take(at, piece)) return true;
    if (std::exchange(has_header_, true)) return false;
    at = 0;
    piece = pieces_.header(log_.active_.bytes, log_.active_.crc);
    return true;
  }

 private:
  std::uint64_t end(std::size_t record) const {
    return record + 1 < log_.records_.size() ? log_.records_[record + 1].offset : log_.active_.bytes;
  }

  const TopicLog& log_;
  SidecarPieces pieces_;
  std::size_t record_ = 0, message_ = 0;  // the next ones
  std::size_t holder_ = 0;                // the record of message_
  bool has_header_ = false;
};

void TopicLog::add_rotation(Script& script) {
  RQ_CHECK(marks_.empty() && active_.message_count > 0);
  const io::FileId handle = shared_.committer.handle(log_);
  if (handle != io::FileId::none) script.barrier(handle);
  const std::string next = shared_.paths.segment(name_, next_base());
  script.create_new(next);
  script.sync_dir(parent_of(next));
  script.replace_file(shared_.paths.sidecar(name_, active_.base), std::make_unique<SidecarContent>(*this));
}

void TopicLog::finish_rotation() {
  RQ_SOMETIMES(true, "log: a segment is sealed and the next one begins");
  const LogIndex base = next_base();
  sealed_.push_back(active_);
  shared_.committer.close(log_);
  start_active(base, 0);
}

}  // namespace rq::storage
