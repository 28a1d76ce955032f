#include "core/storage/names.h"

namespace rq::storage {

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  if (ephemeral_name(name)) name.remove_suffix(kEphemeralSuffix.size());
  if (name.empty()) return false;
  for (const char c : name) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

}  // namespace rq::storage
