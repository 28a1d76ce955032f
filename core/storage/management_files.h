// management-fences.json and management-operations.json (page 20 sections 7.3 and 7.4).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/format_files.h"

namespace rq::storage {

struct ManagementFences {
  std::string revision;
  std::map<std::string, std::int64_t> topics;    // until, Unix ms
  std::map<std::string, std::int64_t> channels;  // "<byte length of topic>:<topic>:<channel>"
  std::map<std::string, std::int64_t> local_channels;
};
Decoded<ManagementFences> decode_fences(ConstBuf content);

struct ManagementOperation {
  std::string fingerprint;
  std::string topic;
  bool completed = false;
  bool has_result = false;
};
struct ManagementOperations {
  std::map<std::string, ManagementOperation> records;  // by operation id
  std::vector<std::string> completed_order;
};
Decoded<ManagementOperations> decode_operations(ConstBuf content);

}  // namespace rq::storage
