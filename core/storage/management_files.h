// management-fences.json and management-operations.json (page 20 sections 7.3 and 7.4).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage/format_files.h"

namespace rq::storage {

struct ManagementFences {
  std::string revision;                          // of the control plane's snapshot, opaque
  std::map<std::string, std::int64_t> topics;    // until, Unix ms
  std::map<std::string, std::int64_t> channels;  // "<byte length of topic>:<topic>:<channel>"
  std::map<std::string, std::int64_t> local_channels;
  bool operator==(const ManagementFences&) const = default;
};
std::string encode_fences(const ManagementFences& fences);
Decoded<ManagementFences> decode_fences(ConstBuf content);

struct ManagementResult {
  std::uint64_t revision = 0;  // of the registry
  bool changed = false;
  bool operator==(const ManagementResult&) const = default;
};
struct ManagementOperation {
  std::string fingerprint;
  std::string topic;  // not empty
  bool completed = false;
  std::optional<ManagementResult> result;
  bool operator==(const ManagementOperation&) const = default;
};
struct ManagementOperations {
  std::map<std::string, ManagementOperation> records;  // by operation id
  std::vector<std::string> completed_order;            // oldest first
  bool operator==(const ManagementOperations&) const = default;
};
std::string encode_operations(const ManagementOperations& operations);
Decoded<ManagementOperations> decode_operations(ConstBuf content);

// 16 to 128 of A-Z a-z 0-9 - _
bool valid_operation_id(std::string_view id);
// The key of a Channel in ManagementFences.
std::string fence_key(std::string_view topic, std::string_view channel);

}  // namespace rq::storage
