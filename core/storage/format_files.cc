#include "core/storage/format_files.h"

#include <algorithm>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/storage/json_reader.h"

namespace rq::storage {
namespace {

constexpr std::string_view kCleanLine = "clean\n";

std::string wrong_version(const char* key, std::uint64_t found) {
  return std::string(key) + " " + std::to_string(found) + ", this program reads 7";
}

}  // namespace

std::string encode_format() { return "{\n  \"version\": 7\n}"; }

std::optional<std::string> check_format(ConstBuf content) {
  std::uint64_t version = 0;
  JsonUnsigned version_target(version);
  JsonObject document;
  document.add("version", version_target);
  if (JsonDefect defect = read_json(content, document)) return defect;
  if (version != kDataFormat) return wrong_version("version", version);
  return std::nullopt;
}

std::string encode_compatibility(const Compatibility& compatibility) {
  std::string out = "{\n  \"data_format\": 7,\n  \"active_writer_feature_level\": ";
  out += std::to_string(compatibility.active_writer_level) + ",\n  \"minimum_reader_feature_level\": ";
  out += std::to_string(compatibility.minimum_reader_level) + ",\n  \"generation\": ";
  return out + std::to_string(compatibility.generation) + "\n}";
}

Decoded<Compatibility> decode_compatibility(ConstBuf content) {
  std::uint64_t format = 0, active = 0, minimum = 0, generation = 0;
  JsonUnsigned format_target(format, UINT32_MAX), active_target(active, UINT32_MAX), minimum_target(minimum, UINT32_MAX);
  JsonUnsigned generation_target(generation);
  JsonObject document;
  document.add("data_format", format_target);
  document.add("active_writer_feature_level", active_target);
  document.add("minimum_reader_feature_level", minimum_target);
  document.add("generation", generation_target);
  if (JsonDefect defect = read_json(content, document)) return tl::unexpected(*defect);
  if (format != kDataFormat) return tl::unexpected(wrong_version("data_format", format));
  return Compatibility{static_cast<std::uint32_t>(active), static_cast<std::uint32_t>(minimum), generation};
}

std::optional<std::string> check_reader_level(const Compatibility& stored) {
  if (stored.minimum_reader_level <= kFeatureLevelMax) return std::nullopt;
  return "rollback fence: readers need feature level " + std::to_string(stored.minimum_reader_level) +
         ", this program supports up to " + std::to_string(kFeatureLevelMax);
}

Decoded<Compatibility> raise_level(const Compatibility& stored, std::uint32_t configured) {
  if (configured < kFeatureLevelMin || configured > kFeatureLevelMax)
    return tl::unexpected("configured feature level " + std::to_string(configured) + " is not supported (1 to 2)");
  if (configured < stored.active_writer_level)
    return tl::unexpected("active writer feature level " + std::to_string(stored.active_writer_level) +
                          " cannot be lowered to the configured " + std::to_string(configured));
  Compatibility out = stored;
  if (configured == stored.active_writer_level) return out;
  out.active_writer_level = configured;
  out.minimum_reader_level = std::max(stored.minimum_reader_level, configured);
  if (out.generation != UINT64_MAX) ++out.generation;
  return out;
}

std::string encode_broker_meta(const BrokerMeta& meta) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("format").value(kDataFormat);
  json.key("node_id").value(meta.node_id);
  json.key("next_sequence").value(meta.next_sequence);
  json.key("registry_revision").value(meta.registry_revision);
  json.end_object();
  return out;
}

Decoded<BrokerMeta> decode_broker_meta(ConstBuf content) {
  BrokerMeta meta;
  std::uint64_t format = 0;
  JsonUnsigned format_target(format, UINT8_MAX), node_target(meta.node_id), sequence_target(meta.next_sequence);
  JsonUnsigned revision_target(meta.registry_revision);
  JsonObject document;
  document.add("format", format_target);
  document.add("node_id", node_target);
  document.add("next_sequence", sequence_target);
  document.add("registry_revision", revision_target, JsonObject::Need::optional);
  if (JsonDefect defect = read_json(content, document)) return tl::unexpected(*defect);
  if (format != kDataFormat) return tl::unexpected(wrong_version("format", format));
  if (meta.next_sequence > kSequenceEnd) return tl::unexpected(std::string("next_sequence is above 2^48"));
  meta.next_sequence = std::max<std::uint64_t>(meta.next_sequence, 1);  // no id has the sequence 0
  return meta;
}

std::string lock_content(std::int64_t pid, bool clean) {
  std::string out = std::to_string(pid) + "\n";
  return clean ? out.append(kCleanLine) : out;
}

bool is_clean_lock(std::string_view content) {
  const std::size_t line = content.find('\n');
  return line != std::string_view::npos && parse_decimal(content.substr(0, line)) && content.substr(line + 1) == kCleanLine;
}

}  // namespace rq::storage
