// rustqueued --verify PATH (D-42): what a start would find in a data directory, without changing anything. A directory
// in use is refused, and while one is looked at, nobody else gets it.
#pragma once

#include <string>

namespace rq::service {

// Prints the report on stdout and faults on stderr; the exit status.
int verify_directory(const std::string& path);

}  // namespace rq::service
