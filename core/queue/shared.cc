#include "core/queue/shared.h"

#include <algorithm>

#include "core/queue/channel_lane.h"

namespace rq::queue {

Shared::Shared(io::Host& host_ref, const EngineOptions& options_ref, std::size_t write_handles_max)
    : host(host_ref),
      options(options_ref),
      paths(options_ref.data_path),
      committer(host_ref, write_handles_max),
      reads(host_ref),
      bodies(options_ref.entry_cache_bytes),
      logs{.host = host_ref,
           .committer = committer,
           .reads = reads,
           .pages = pages,
           .bodies = bodies,
           .arena = arena,
           .paths = paths,
           .max_segment_bytes = options_ref.max_segment_bytes,
           .next_serial = 1,
           .metadata_reads = 0,
           .logs = {},
           .fault = {},
           .frame = {},
           .metas = {}},
      metadata(options_ref.message_index_cache_bytes),
      ephemeral{options_ref.node_ephemeral_bytes, 0},
      holds(options_ref.node_delivery_inflight_bytes),
      slot_turns(&ChannelLane::waits_for_slot),
      read_turns(&ChannelLane::waits_for_read) {
  channel_settings.max_ack_gap = options.max_ack_gap;
  channel_settings.feature_level = options.feature_level;
}

void Shared::give_back_bytes(Consumer& consumer, std::uint64_t bytes) {
  bytes = std::min(bytes, consumer.held_bytes);
  consumer.held_bytes -= bytes;
  holds.give_back(bytes);
}

void Shared::give_back_slot(Consumer& consumer) {
  RQ_CHECK(consumer.outstanding > 0 && slots_in_use > 0);
  --consumer.outstanding;
  --slots_in_use;
}

Consumer& ConsumerTable::add() {
  std::uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  Slot& slot = slots_[index];
  slot.used = true;
  ++slot.generation;
  ++live_;
  slot.consumer = Consumer{};
  slot.consumer.id = static_cast<ConsumerId>(std::uint64_t{slot.generation} << 32 | (index + 1));
  return slot.consumer;
}

Consumer* ConsumerTable::find(ConsumerId id) {
  const auto raw = static_cast<std::uint64_t>(id);
  const std::uint64_t index = (raw & 0xffffffff) - 1;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.used && slot.generation == raw >> 32 ? &slot.consumer : nullptr;
}

void ConsumerTable::remove(ConsumerId id) {
  RQ_CHECK(find(id) != nullptr);
  const auto index = static_cast<std::uint32_t>((static_cast<std::uint64_t>(id) & 0xffffffff) - 1);
  slots_[index].used = false;
  slots_[index].consumer = Consumer{};
  free_.push_back(index);
  --live_;
}

}  // namespace rq::queue
