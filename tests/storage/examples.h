// The worked examples of the format description (page 20), as bytes and as the fields they are made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"
#include "core/storage/checkpoint.h"
#include "core/storage/record.h"
#include "core/storage/sidecar.h"

namespace rq::storage::examples {

inline constexpr std::int64_t kTime = 1'700'000'000'000'000'000;
inline constexpr std::int64_t kTimeMs = 1'700'000'000'000;
inline constexpr MessageId kFirstId = 0x0001000000000001;

// Hex digits with blanks in between.
inline std::string unhex(std::string_view text) {
  std::string out;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<char>(high << 4 | digit));
      high = -1;
    }
  }
  return out;
}

inline std::vector<Slice> slices(const std::vector<std::string>& bodies) {
  std::vector<Slice> out;
  for (const std::string& body : bodies) out.push_back(Slice::copy_of(bytes_of(body)));
  return out;
}

// One PublishBatch record as it lies in a segment.
inline std::string batch(const BatchFields& fields, const std::vector<std::string>& bodies, std::uint64_t offset = 0,
                         std::vector<MessageMeta>* metas = nullptr) {
  const std::vector<Slice> held = slices(bodies);
  std::string frame;
  put_batch_frame(frame, fields, held, offset, metas);
  std::vector<ConstBuf> pieces;
  add_batch_pieces(pieces, bytes_of(frame), held);
  std::string out;
  for (const ConstBuf piece : pieces) put_bytes(out, piece);
  return out;
}

inline const std::string kEx1 = unhex(
    "52515637 07 01 0000 0000000000000001 17979cfe362a0000 0001000000000001 0000018bcfe56800 0000001d 98e2e96e"
    "00000001 0000000000000001 0001000000000001 00000005 68656c6c6f");
inline const std::string kEx2 = unhex(
    "52515637 07 01 0000 0000000000000002 17979cfe362a03e8 0001000000000002 0000018bcfe65260 0000002f 05a8aa52"
    "00000002 0000000000000002 0001000000000002 00000001 61 0000000000000003 0001000000000003 00000002 6263");
inline const BatchFields kEx1Fields{1, kTime, kFirstId, kTimeMs, 1};
inline const BatchFields kEx2Fields{2, kTime + 1'000, kFirstId + 1, kTimeMs + 60'000, 2};

inline const std::string kEx4 = unhex(
    "52514937 02 000000 00000000000000ac eed37faf 00000002 000000c0 12dcf748 0000000000000001 0000000000000002"
    "00000000000000f0 a2e641de 00000000"
    "0000000000000001 0000000000000000 000000000000004d"
    "0000000000000002 000000000000004d 000000000000005f"
    "5251544d 00000002 00000003"
    "0000000000000001 0001000000000001 17979cfe362a0000 0000018bcfe56800 0000000000000001 0000000000000048 00000005 9a71bb4c "
    "3e2ef779"
    "0000000000000002 0001000000000002 17979cfe362a03e8 0000018bcfe65260 0000000000000002 0000000000000095 00000001 c1d04330 "
    "602239db"
    "0000000000000003 0001000000000003 17979cfe362a03e8 0000018bcfe65260 0000000000000002 00000000000000aa 00000002 242e02ac "
    "392f974b");

inline const std::string kEx5 =
    unhex("52434337 000000e4 3b574cee") +
    R"({"format":7,"name":"workers","barrier_position":0,"ack_floor_position":0,"acknowledged":[],"requeued_until":{},)"
    R"("attempts":{},"message_count_origin_position":0,"requeue_count":0,"timeout_count":0,"paused":false,"ephemeral":false})";
inline const std::string kEx6 =
    unhex("52434337 00000101 b65788be") +
    R"({"format":7,"name":"workers","barrier_position":4,"ack_floor_position":9,"acknowledged":[11,12],)"
    R"("requeued_until":{"10":1700000005000},"attempts":{"10":2},"message_count_origin_position":4,"requeue_count":3,)"
    R"("timeout_count":1,"paused":false,"ephemeral":false})";

inline ChannelImage ex6_channel() {
  ChannelImage channel;
  channel.name = "workers";
  channel.barrier = 4;
  channel.ack_floor = 9;
  channel.acknowledged = {11, 12};
  channel.requeued_until_ms = {{10, 1'700'000'005'000}};
  channel.attempts = {{10, 2}};
  channel.message_count_origin = 4;
  channel.requeue_count = 3;
  channel.timeout_count = 1;
  return channel;
}

}  // namespace rq::storage::examples
