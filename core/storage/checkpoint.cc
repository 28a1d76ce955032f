#include "core/storage/checkpoint.h"

#include <algorithm>

#include "core/base/json_writer.h"
#include "core/storage/frame.h"
#include "core/storage/json_reader.h"
#include "core/storage/names.h"

namespace rq::storage {
namespace {

constexpr std::string_view kMagic = "RCC7";

Decoded<ConstBuf> frame_body(ConstBuf file) {
  if (file.size() < kFrameHeaderBytes) return tl::unexpected(std::string("shorter than its 12-byte frame header"));
  const FrameHeader header = read_frame_header(file);
  if (header.magic != kMagic) return tl::unexpected(std::string("wrong magic"));
  if (header.body_bytes > kCheckpointBodyBytesMax) return tl::unexpected(std::string("body above 64 MiB"));
  if (header.body_bytes != file.size() - kFrameHeaderBytes) return tl::unexpected(std::string("length differs from the file's"));
  const ConstBuf body = file.subspan(kFrameHeaderBytes);
  if (crc32c(body) != header.body_crc) return tl::unexpected(std::string("checksum mismatch"));
  return body;
}

}  // namespace

std::string encode_checkpoint(const ChannelImage& channel, bool ephemeral) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  json.key("format").value(kDataFormat);
  json.key("name").value(channel.name);
  json.key("barrier_position").value(channel.barrier);
  json.key("ack_floor_position").value(channel.ack_floor);
  json.key("acknowledged").begin_array();
  for (const Position position : channel.acknowledged) json.value(position);
  json.end_array();
  json.key("requeued_until").begin_object();
  for (const auto& [position, until_ms] : channel.requeued_until_ms) json.number_key(position).value(until_ms);
  json.end_object();
  json.key("attempts").begin_object();
  for (const auto& [position, attempts] : channel.attempts) json.number_key(position).value(std::uint64_t{attempts});
  json.end_object();
  json.key("message_count_origin_position").value(channel.message_count_origin);
  json.key("requeue_count").value(channel.requeue_count);
  json.key("timeout_count").value(channel.timeout_count);
  json.key("paused").value(channel.paused);
  json.key("ephemeral").value(ephemeral);
  json.end_object();
  std::string out;
  out.reserve(kFrameHeaderBytes + body.size());
  put_frame(out, kMagic, bytes_of(body));
  return out;
}

Decoded<Checkpoint> decode_checkpoint(ConstBuf file) {
  using Need = JsonObject::Need;
  const Decoded<ConstBuf> body = frame_body(file);
  if (!body) return tl::unexpected(body.error());
  Checkpoint out;
  ChannelImage& channel = out.channel;
  std::uint64_t format = 0;
  std::optional<std::uint64_t> origin;
  JsonUnsigned format_target(format, UINT8_MAX), barrier_target(channel.barrier), floor_target(channel.ack_floor);
  JsonUnsigned requeues_target(channel.requeue_count), timeouts_target(channel.timeout_count);
  JsonText name_target(channel.name);
  JsonUnsignedArray acknowledged_target(channel.acknowledged);
  JsonNumberMap<std::int64_t> requeued_target(channel.requeued_until_ms);
  JsonNumberMap<std::uint16_t> attempts_target(channel.attempts);
  JsonOptionalUnsigned origin_target(origin);
  JsonBool paused_target(channel.paused), ephemeral_target(out.ephemeral);
  JsonObject document;
  document.add("format", format_target);
  document.add("name", name_target);
  document.add("barrier_position", barrier_target);
  document.add("ack_floor_position", floor_target);
  document.add("acknowledged", acknowledged_target);
  document.add("requeued_until", requeued_target);
  document.add("attempts", attempts_target, Need::optional);
  document.add("message_count_origin_position", origin_target, Need::optional);
  document.add("requeue_count", requeues_target, Need::optional);
  document.add("timeout_count", timeouts_target, Need::optional);
  document.add("paused", paused_target);
  document.add("ephemeral", ephemeral_target);
  if (JsonDefect defect = read_json(*body, document)) return tl::unexpected(*defect);
  if (format != kDataFormat) return tl::unexpected("format " + std::to_string(format) + ", this program reads 7");
  if (!valid_name(channel.name)) return tl::unexpected(std::string("invalid Channel name"));
  if (channel.ack_floor < channel.barrier) return tl::unexpected(std::string("ack_floor_position is below barrier_position"));
  channel.message_count_origin = origin.value_or(channel.barrier);
  if (channel.message_count_origin > channel.barrier)
    return tl::unexpected(std::string("message_count_origin_position is above barrier_position"));
  std::vector<Position>& acknowledged = channel.acknowledged;
  if (!std::is_sorted(acknowledged.begin(), acknowledged.end())) std::sort(acknowledged.begin(), acknowledged.end());
  acknowledged.erase(std::unique(acknowledged.begin(), acknowledged.end()), acknowledged.end());
  return out;
}

}  // namespace rq::storage
