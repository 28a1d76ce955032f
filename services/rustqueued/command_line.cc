#include "services/rustqueued/command_line.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace rq::service {

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"RustQueue: a durable message broker that speaks the NSQ protocol"};
  app.name("rustqueued");
  app.set_version_flag("--version", std::string("rustqueued " RQ_VERSION));
  app.add_option("--config", line.config_path, "TOML file; without it, built-in defaults plus environment overrides")
      ->envname("RUSTQUEUE_CONFIG")
      ->type_name("PATH");
  app.add_flag("--check-config", line.check_config, "check the configuration and exit");
  app.add_option("--capabilities-output", line.capabilities_output, "write what this binary can do to PATH and exit")
      ->type_name("PATH");
  app.add_option("--verify", line.verify_path, "check the data directory PATH without changing it, report, and exit")
      ->type_name("PATH");
  app.add_option(
         "--salvage", line.salvage_path,
         "make the damaged data directory PATH open again: cut behind bad records, keep what is cut beside it, say what is lost")
      ->type_name("PATH");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    line.exit_status = app.exit(asked);
  } catch (const CLI::Error& error) {
    std::cerr << "error: " << error.what() << "\n\n" << app.help();
    line.exit_status = 2;
  }
  return line;
}

}  // namespace rq::service
