#include "core/storage/outbox.h"

#include <openssl/evp.h>

#include "core/base/check.h"
#include "core/base/crc32c.h"
#include "core/base/hex.h"
#include "core/storage/names.h"

namespace rq::storage {
namespace {

constexpr std::string_view kMagic = "RQO7";
constexpr std::string_view kSuffix = ".outbox";
constexpr std::uint32_t kCrcOffset = 24;

std::uint32_t crc_of(ConstBuf file) { return crc32c(file.subspan(kOutboxHeaderBytes), crc32c(file.first(kCrcOffset))); }

// The first 16 bytes of SHA-256 over both names with their lengths.
std::string key_of(std::string_view topic, std::string_view channel) {
  std::string text;
  put64(text, topic.size());
  text.append(topic);
  put64(text, channel.size());
  text.append(channel);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  RQ_CHECK(EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr) == 1 && bytes == 32);
  return to_hex({reinterpret_cast<const char*>(digest), 16});
}

std::string older_key_of(std::string_view topic, std::string_view channel) {
  std::string text(topic);
  text.push_back('\0');
  text.append(channel);
  return hex16(crc32c(bytes_of(text))).substr(8);
}

}  // namespace

std::string encode_outbox(const OutboxEntry& entry, std::string_view body) {
  std::string out(kMagic);
  put16(out, static_cast<std::uint16_t>(entry.source_topic.size()));
  put16(out, static_cast<std::uint16_t>(entry.source_channel.size()));
  put16(out, static_cast<std::uint16_t>(entry.target_topic.size()));
  put16(out, 0);
  put64(out, entry.source_id);
  put32(out, static_cast<std::uint32_t>(body.size()));
  put32(out, 0);  // the CRC, once everything is there
  out += entry.source_topic;
  out += entry.source_channel;
  out += entry.target_topic;
  out += body;
  store32(reinterpret_cast<std::byte*>(out.data()) + kCrcOffset, crc_of(bytes_of(out)));
  return out;
}

Decoded<OutboxEntry> decode_outbox(ConstBuf file) {
  if (file.size() < kOutboxHeaderBytes || file.size() > kOutboxBytesMax) return tl::unexpected(std::string("impossible length"));
  const std::byte* at = file.data();
  if (text_of(file.first(4)) != kMagic) return tl::unexpected(std::string("wrong magic"));
  const std::size_t topic = load16(at + 4), channel = load16(at + 6), target = load16(at + 8), body = load32(at + 20);
  if (load16(at + 10) != 0) return tl::unexpected(std::string("reserved bytes are set"));
  if (file.size() != kOutboxHeaderBytes + topic + channel + target + body)
    return tl::unexpected(std::string("length differs from the file's"));
  if (crc_of(file) != load32(at + kCrcOffset)) return tl::unexpected(std::string("checksum mismatch"));
  std::string_view text = text_of(file.subspan(kOutboxHeaderBytes));
  const auto take = [&text](std::size_t bytes) {
    const std::string part(text.substr(0, bytes));
    text.remove_prefix(bytes);
    return part;
  };
  OutboxEntry entry;
  entry.source_topic = take(topic);
  entry.source_channel = take(channel);
  entry.target_topic = take(target);
  entry.body = take(body);
  entry.source_id = load64(at + 12);
  for (const std::string& name : {entry.source_topic, entry.source_channel, entry.target_topic})
    if (!valid_name(name)) return tl::unexpected(std::string("invalid name"));
  return entry;
}

std::string outbox_file_name(const OutboxEntry& entry) {
  return hex16(entry.source_id) + "-" + key_of(entry.source_topic, entry.source_channel) + std::string(kSuffix);
}

bool outbox_name_fits(std::string_view file_name, const OutboxEntry& entry) {
  if (file_name == outbox_file_name(entry)) return true;
  const std::string older = hex16(entry.source_id) + "-" + older_key_of(entry.source_topic, entry.source_channel);
  return file_name == older + std::string(kSuffix);
}

}  // namespace rq::storage
