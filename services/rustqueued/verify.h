// rustqueued --verify PATH (D-42): what a start would find in a data directory, without changing anything.
#pragma once

#include <string>

namespace rq::service {

// Prints the report on stdout and faults on stderr; the exit status.
int verify_directory(const std::string& path);

}  // namespace rq::service
