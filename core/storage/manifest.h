// The Topic manifest (page 20 section 5).
#pragma once

#include <optional>
#include <string>

#include "core/storage/format_files.h"
#include "core/storage/types.h"

namespace rq::storage {

struct Manifest {
  std::string name;
  bool paused = false;
  bool deleted = false;
  Position next_position = 1;
  std::optional<Position> unrouted_from;
  bool ttl_discard = false;
  std::optional<std::uint64_t> message_ttl_seconds;
  Position expired_through = 0;
  std::uint64_t ttl_discarded_messages = 0;
  bool operator==(const Manifest&) const = default;
};

std::string encode_manifest(const Manifest& manifest);
// All checks of section 5.1 but the directory name; of a deleted Topic only the form counts.
Decoded<Manifest> decode_manifest(ConstBuf content);

}  // namespace rq::storage
