// The command line of rustqueued (page 31 section 1.1).
#pragma once

#include <optional>
#include <string>

namespace rq::service {

struct CommandLine {
  std::string config_path;  // empty: built-in defaults plus environment
  bool check_config = false;
  std::string capabilities_output;
  std::string salvage_path;
  std::string verify_path;
  std::optional<int> exit_status;  // set: everything was said already (--help, --version, a usage error)
};

CommandLine parse_command_line(int argc, char** argv);

}  // namespace rq::service
