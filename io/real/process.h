// Facts about this process and the few settings that are its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rq::real {

std::int64_t process_id();
std::uint64_t raise_file_limit();  // RLIMIT_NOFILE to its hard limit; returns what holds now
std::uint64_t entropy();           // from the kernel
std::map<std::string, std::string> environment(std::string_view prefix);  // variables that start so
std::string environment_value(const char* name);                          // empty when unset

}  // namespace rq::real
