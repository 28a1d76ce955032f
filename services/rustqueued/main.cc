// rustqueued: reads configuration, puts a Broker on the real ports, runs it. Exit statuses: page 31 section 1.3.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/broker/config.h"
#include "core/broker/native_json.h"
#include "io/real/log_sink.h"
#include "io/real/process.h"
#include "services/rustqueued/command_line.h"
#include "services/rustqueued/config_file.h"
#include "services/rustqueued/salvage.h"
#include "services/rustqueued/serve.h"
#include "services/rustqueued/verify.h"

namespace {

int fail(const std::string& why) {
  fmt::print(stderr, "Error: {}\n", why);
  return 1;
}

// Page 31 section 1.2: plain overwrite, since the path may be a device that must not be replaced.
int write_capabilities(const std::string& path) {
  const std::string text = rq::broker::binary_capabilities_json();
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return fail(fmt::format("cannot write capabilities to {}: {}", path, std::strerror(errno)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) return fail(fmt::format("cannot write capabilities to {}: {}", path, std::strerror(errno)));
  return 0;
}

int run(int argc, char** argv) {
  using namespace rq;
  const service::CommandLine line = service::parse_command_line(argc, argv);
  if (line.exit_status) return *line.exit_status;
  if (!line.capabilities_output.empty()) return write_capabilities(line.capabilities_output);
  if (!line.verify_path.empty()) return service::verify_directory(line.verify_path);
  if (!line.salvage_path.empty()) return service::salvage_directory(line.salvage_path);

  const auto config = service::load(line.config_path, service::config_environment());
  if (!config) return fail(config.error());
  const service::FileProbe files;
  if (const auto violated = broker::validate(*config, &files)) return fail("invalid configuration: " + *violated);
  if (line.check_config) {
    std::puts("configuration is valid");
    return 0;
  }
  return service::serve(*config, real::LogFilter::parse(real::environment_value("RUST_LOG")));
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  std::fflush(nullptr);
  ::_exit(status);  // nothing is destroyed: calls of the Broker may still be on their way
}
