// The record of a protective eviction (page 20 section 7.2): written before any position is skipped, never read back.
#pragma once

#include <cstdint>
#include <string>

#include "core/storage/paths.h"
#include "core/storage/types.h"

namespace rq::storage {

struct EvictionAudit {
  std::string topic;
  Position first_position = 0, through_position = 0;
  std::uint64_t messages = 0;
  std::string segment;             // path of the segment file
  std::int64_t created_at_ms = 0;  // Unix; not negative
};

std::string encode_audit(const EvictionAudit& audit);
std::string audit_path(const DataPaths& paths, const EvictionAudit& audit);

}  // namespace rq::storage
