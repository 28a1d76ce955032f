#include "services/rustqueue-sim/export.h"

#include <filesystem>
#include <fstream>

namespace rq::sim {

bool export_directories(const std::string& to, std::uint64_t seed, const RunResult& run) {
  std::error_code error;
  for (const auto& [moment, files] : run.directories) {
    const std::filesystem::path root = std::filesystem::path(to) / ("seed-" + std::to_string(seed) + "-" + moment);
    for (const auto& [path, content] : files) {
      const std::filesystem::path file = root / std::filesystem::path(path).relative_path();
      std::filesystem::create_directories(file.parent_path(), error);
      std::ofstream out(file, std::ios::binary | std::ios::trunc);
      out.write(content.data(), static_cast<std::streamsize>(content.size()));
      if (error || !out.good()) return false;
    }
  }
  return true;
}

}  // namespace rq::sim
