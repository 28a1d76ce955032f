// The report of `rustqueued --verify PATH` (D-42): what a data directory holds, what opening it would repair, and what is wrong.
#pragma once

#include <string>

#include "core/storage/opener.h"

namespace rq::storage {

struct VerifyReport {
  std::string text;  // lines, each ended by a newline; the last one starts with "ok" or "FAILED"
  bool ok = false;
};

// Of an opener in read-only mode that is done().
VerifyReport verify_report(const Opener& opener);

}  // namespace rq::storage
