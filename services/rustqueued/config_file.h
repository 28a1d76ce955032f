// From the TOML file and the environment to a Config. Every error says where it comes from: the file, or the variable.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "core/broker/config.h"

namespace rq::service {

// The file as a flat list of dotted keys; the error names the file, and line and column where it cannot be parsed.
tl::expected<broker::ConfigFile, std::string> read_config_file(const std::string& path);

// Defaults, then the file (none when the path is empty), then the environment.
tl::expected<broker::Config, std::string> load(const std::string& path, const broker::Environment& environment);

// The variables that configuration may read.
broker::Environment config_environment();

// Facts about files for the validation rules.
struct FileProbe final : broker::PathProbe {
  bool exists(const std::string& path) const override;
  bool regular_file(const std::string& path) const override;
};

}  // namespace rq::service
