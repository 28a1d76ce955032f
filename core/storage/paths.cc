#include "core/storage/paths.h"

#include "core/base/hex.h"
#include "core/base/text.h"

namespace rq::storage {
namespace {

constexpr std::string_view kPrefix = "segment-";
constexpr std::string_view kLogSuffix = ".rqlog";
constexpr std::string_view kIndexSuffix = ".rqidx";

}  // namespace

DataPaths::DataPaths(std::string_view root) : root_(root) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string DataPaths::in_root(std::string_view relative) const {
  std::string out = root_;
  if (!out.ends_with('/')) out.push_back('/');
  return out.append(relative);
}

std::string DataPaths::relative(std::string_view path) const {
  if (path.size() > root_.size() && path.starts_with(root_)) {
    path.remove_prefix(root_.size());
    if (path.starts_with('/')) path.remove_prefix(1);
  }
  return std::string(path);
}

std::string DataPaths::topic(std::string_view topic) const { return topics() + "/" + to_hex(topic); }
std::string DataPaths::manifest(std::string_view name) const { return topic(name) + "/manifest"; }
std::string DataPaths::segments(std::string_view name) const { return topic(name) + "/segments"; }
std::string DataPaths::channels(std::string_view name) const { return topic(name) + "/channels"; }
std::string DataPaths::segment(std::string_view name, LogIndex base) const {
  return segments(name) + "/" + segment_file_name(base);
}
std::string DataPaths::sidecar(std::string_view name, LogIndex base) const {
  return segments(name) + "/" + sidecar_file_name(base);
}
std::string DataPaths::checkpoint(std::string_view topic, std::string_view channel) const {
  return channels(topic) + "/" + to_hex(channel) + ".checkpoint";
}
std::string DataPaths::wal(std::string_view topic, std::string_view channel) const {
  return channels(topic) + "/" + to_hex(channel) + ".wal";
}

std::string temporary_of(std::string_view path) { return std::string(path) + ".tmp"; }

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string segment_file_name(LogIndex base) { return std::string(kPrefix).append(decimal20(base)).append(kLogSuffix); }
std::string sidecar_file_name(LogIndex base) { return std::string(kPrefix).append(decimal20(base)).append(kIndexSuffix); }

SegmentName parse_segment_name(std::string_view file_name, LogIndex& base) {
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kLogSuffix)) return SegmentName::other;
  if (file_name.size() < kPrefix.size() + kLogSuffix.size()) return SegmentName::other;
  const auto number = parse_decimal20(file_name.substr(kPrefix.size(), file_name.size() - kPrefix.size() - kLogSuffix.size()));
  if (!number) return SegmentName::malformed;
  base = *number;
  return SegmentName::segment;
}

std::optional<LogIndex> parse_sidecar_name(std::string_view file_name) {
  if (file_name.size() != kPrefix.size() + 20 + kIndexSuffix.size()) return std::nullopt;
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kIndexSuffix)) return std::nullopt;
  return parse_decimal20(file_name.substr(kPrefix.size(), 20));
}

}  // namespace rq::storage
