// What recovery found out about one Topic directory, and what has to change on disk. Made by TopicRecovery without writing
// anything (so a refusal has changed nothing, D-46, and --verify can stop here); carried out by TopicRepair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/storage/channel_load.h"
#include "core/storage/manifest.h"

namespace rq::storage {

struct TopicPlan {
  enum class Kind : std::uint8_t {
    open,
    remove,  // marked deleted
    ignore,  // without manifest: a stranger, or remains of a deletion or creation, which are emptied before the name is used
             // again
  };
  Kind kind = Kind::open;
  std::string dir;  // the directory's path
  Manifest stored;
  Manifest wanted;
  TopicImage image;  // as it will be after the repairs

  std::vector<LogIndex> sidecars;           // of these segments they are to be written
  std::optional<std::uint64_t> cut_active;  // a torn tail starts there
  LogIndex tail_base = 0;                   // the segment that is active on disk now, 0 if there is none
  std::uint64_t tail_bytes = 0;
  std::uint64_t tail_records_offset = 0;  // where its last two records start
  bool create_active = false;             // image.active.info.base: a first segment, or the one behind a sealed gap

  struct ChannelRepair {
    std::string stem;
    bool remove = false;  // ephemeral
    bool create_wal = false;
    bool cut_wal = false;         // to image.wal_bytes, before anything is added
    bool evict = false;           // add Evict(expired_through)
    bool checkpoint = false;      // instead, because the WAL is full: a new checkpoint and an empty WAL
    std::uint64_t wal_bytes = 0;  // of complete commands now, before the Evict
  };
  std::vector<ChannelRepair> channels;  // one for every checkpoint, in the order of image.channels but for removed ones

  std::vector<std::string> leftovers;  // temporaries and orphan sidecars to unlink
  std::vector<std::string> missing_dirs;

  bool manifest_changes() const { return !(stored == wanted); }
};

}  // namespace rq::storage
