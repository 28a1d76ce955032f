#include "core/storage/manifest.h"

#include "core/base/json_writer.h"
#include "core/storage/json_reader.h"
#include "core/storage/names.h"

namespace rq::storage {
namespace {

constexpr std::string_view kReliable = "RELIABLE";
constexpr std::string_view kTtlDiscard = "TTL_DISCARD";

std::optional<std::string> defect_of(const Manifest& manifest) {
  if (manifest.unrouted_from && *manifest.unrouted_from == 0) return "unrouted_from_position is 0";
  if (manifest.unrouted_from && *manifest.unrouted_from > manifest.next_position)
    return "unrouted_from_position is above next_position";
  if (manifest.ttl_discard && manifest.message_ttl_seconds.value_or(0) == 0)
    return "TTL_DISCARD without message_ttl_seconds above 0";
  if (!manifest.ttl_discard && manifest.message_ttl_seconds) return "RELIABLE with message_ttl_seconds";
  if (manifest.expired_through != 0 && manifest.expired_through >= manifest.next_position)
    return "expired_through_position is not below next_position";
  return std::nullopt;
}

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("format").value(kDataFormat);
  json.key("name").value(manifest.name);
  json.key("paused").value(manifest.paused);
  json.key("deleted").value(manifest.deleted);
  json.key("next_position").value(manifest.next_position);
  if (manifest.unrouted_from) json.key("unrouted_from_position").value(*manifest.unrouted_from);
  json.key("delivery_mode").value(manifest.ttl_discard ? kTtlDiscard : kReliable);
  if (manifest.message_ttl_seconds) json.key("message_ttl_seconds").value(*manifest.message_ttl_seconds);
  json.key("expired_through_position").value(manifest.expired_through);
  json.key("ttl_discarded_messages").value(manifest.ttl_discarded_messages);
  json.end_object();
  return out;
}

Decoded<Manifest> decode_manifest(ConstBuf content) {
  using Need = JsonObject::Need;
  Manifest manifest;
  std::uint64_t format = 0;
  std::string mode(kReliable);
  JsonUnsigned format_target(format, UINT8_MAX), next_target(manifest.next_position), expired_target(manifest.expired_through);
  JsonUnsigned discarded_target(manifest.ttl_discarded_messages);
  JsonText name_target(manifest.name), mode_target(mode);
  JsonBool paused_target(manifest.paused), deleted_target(manifest.deleted);
  JsonOptionalUnsigned unrouted_target(manifest.unrouted_from), ttl_target(manifest.message_ttl_seconds);
  JsonObject document;
  document.add("format", format_target);
  document.add("name", name_target);
  document.add("paused", paused_target);
  document.add("deleted", deleted_target, Need::optional);
  document.add("next_position", next_target);
  document.add("unrouted_from_position", unrouted_target, Need::optional);
  document.add("delivery_mode", mode_target, Need::optional);
  document.add("message_ttl_seconds", ttl_target, Need::optional);
  document.add("expired_through_position", expired_target, Need::optional);
  document.add("ttl_discarded_messages", discarded_target, Need::optional);
  if (JsonDefect defect = read_json(content, document)) return tl::unexpected(*defect);
  if (format != kDataFormat) return tl::unexpected("format " + std::to_string(format) + ", this program reads 7");
  if (!valid_name(manifest.name)) return tl::unexpected(std::string("invalid Topic name"));
  if (mode != kReliable && mode != kTtlDiscard) return tl::unexpected(std::string("unknown delivery_mode"));
  manifest.ttl_discard = mode == kTtlDiscard;
  if (manifest.deleted) return manifest;
  if (std::optional<std::string> defect = defect_of(manifest)) return tl::unexpected(*defect);
  return manifest;
}

}  // namespace rq::storage
