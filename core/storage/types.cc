#include "core/storage/types.h"

namespace rq::storage {

std::string Fault::message() const {
  std::string out = file;
  if (offset) out += " at offset " + std::to_string(*offset);
  return out.empty() ? what : out + ": " + what;
}

}  // namespace rq::storage
