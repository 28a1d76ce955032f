#include "core/broker/token_classes.h"

#include <utility>

namespace rq::broker {

std::string open_token_classes(const Config::Security& security) {
  const std::pair<const char*, bool> classes[] = {
      {"publish", !security.publish_token_file},
      {"admin", !security.admin_token_file},
      {"registry", !security.registry_token_file && !security.console_token_file},
      {"console", !security.console_token_file},
  };
  std::string names;
  for (const auto& [name, open] : classes) {
    if (!open) continue;
    if (!names.empty()) names += ',';
    names += name;
  }
  return names;
}

}  // namespace rq::broker
