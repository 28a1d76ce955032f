// Every path below a data directory (page 20 section 1.1), and what a file name says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/storage/types.h"

namespace rq::storage {

class DataPaths {
 public:
  explicit DataPaths(std::string_view root);  // a trailing "/" is dropped

  const std::string& root() const { return root_; }
  std::string in_root(std::string_view relative) const;
  // The part below the root, for Faults; the path itself when it is not below it.
  std::string relative(std::string_view path) const;

  std::string lock() const { return in_root(".rustqueue.lock"); }
  std::string format() const { return in_root("FORMAT"); }
  std::string compatibility() const { return in_root("COMPATIBILITY"); }
  std::string format_temporary() const { return in_root(".FORMAT.tmp"); }  // of FORMAT and of COMPATIBILITY (U2)
  std::string broker_meta() const { return in_root("broker.meta"); }
  std::string fences() const { return in_root("management-fences.json"); }
  std::string operations() const { return in_root("management-operations.json"); }
  std::string topics() const { return in_root("topics"); }
  std::string outbox() const { return in_root("dlq-outbox"); }
  std::string audit() const { return in_root("audit"); }

  std::string topic(std::string_view topic) const;
  std::string manifest(std::string_view topic) const;
  std::string segments(std::string_view topic) const;
  std::string channels(std::string_view topic) const;
  std::string segment(std::string_view topic, LogIndex base) const;
  std::string sidecar(std::string_view topic, LogIndex base) const;
  std::string checkpoint(std::string_view topic, std::string_view channel) const;
  std::string wal(std::string_view topic, std::string_view channel) const;

 private:
  std::string root_;
};

// The temporary beside a file that is replaced by rename (U1, U3). FORMAT and COMPATIBILITY have one of their own.
std::string temporary_of(std::string_view path);
std::string parent_of(std::string_view path);

std::string segment_file_name(LogIndex base);  // segment-<20 digits>.rqlog
std::string sidecar_file_name(LogIndex base);  // segment-<20 digits>.rqidx

enum class SegmentName { segment, other, malformed };  // malformed: opening fails (page 20 section 3.2)
SegmentName parse_segment_name(std::string_view file_name, LogIndex& base);
// The base of a "segment-<20 digits>.rqidx".
std::optional<LogIndex> parse_sidecar_name(std::string_view file_name);

}  // namespace rq::storage
