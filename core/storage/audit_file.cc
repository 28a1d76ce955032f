#include "core/storage/audit_file.h"

#include "core/base/hex.h"
#include "core/base/json_writer.h"
#include "core/base/text.h"

namespace rq::storage {

std::string encode_audit(const EvictionAudit& audit) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("topic").value(audit.topic);
  json.key("first_position").value(audit.first_position);
  json.key("through_position").value(audit.through_position);
  json.key("messages").value(audit.messages);
  json.key("segment").value(audit.segment);
  json.key("created_at_ms").value(audit.created_at_ms);
  json.end_object();
  return out;
}

std::string audit_path(const DataPaths& paths, const EvictionAudit& audit) {
  return paths.audit() + "/eviction-" + decimal20(static_cast<std::uint64_t>(audit.created_at_ms)) + "-" + to_hex(audit.topic) +
         "-" + decimal20(audit.through_position) + ".json";
}

}  // namespace rq::storage
