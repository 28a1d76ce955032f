// Replay of one Channel WAL command over a Channel's recovered state (page 20 sections 6.2 and 6.5). Pure: no files, no gaps; the
// opener drops positions that no stored message covers afterwards (page 20 section 8.4).
//
//  I1 Replaying a prefix of a WAL twice, or a WAL over a checkpoint that contains it, changes nothing but the level 1 requeue
//     count.
//  I2 A finished position stays finished: a Requeue of one changes nothing (HARDEN of section 6.5).
#pragma once

#include "core/storage/image.h"
#include "core/storage/wal.h"

namespace rq::storage {

// Applies `command` to the queue state of `image`; wal_commands and wal_bytes are the caller's. Cheap in command order as the
// Broker writes it; a Finish far from the end of `acknowledged` costs one move of the numbers behind it.
void apply(ChannelImage& image, const WalCommand& command);

// Raises the floor over consecutive acknowledged positions. True if it moved.
bool advance_floor(ChannelImage& image);

}  // namespace rq::storage
