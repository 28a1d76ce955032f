// The rules that join a Topic's log with its Channels (page 20 section 8.4): high water, absent positions, floors, the gap behind
// the tail, the unrouted boundary. Pure: it works on what was read.
#pragma once

#include <optional>
#include <vector>

#include "core/storage/topic_plan.h"

namespace rq::storage {

// Record indexes go on from file to file, positions rise, and no segment but the last is without messages (sections 8.2, 8.3).
// The Fault's file is the segment's path below `segments_dir`.
std::optional<Fault> check_segments(const TopicImage& topic, const std::string& segments_dir);

// Ranges of 1..next_position-1 that no segment covers.
std::vector<Range> absent_ranges(const TopicImage& topic);
// Drops what a Channel remembers about absent and finished positions and advances its floor over gaps and acknowledgements.
void settle_channel(ChannelImage& channel, const std::vector<Range>& absent);

std::string evict_frame(Position through);

// Everything from step 2 of section 8.4 on: `plan.image` holds log, manifest values and replayed Channels.
std::optional<Fault> settle_topic(TopicPlan& plan);

}  // namespace rq::storage
