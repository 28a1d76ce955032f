#include "services/rustqueued/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "io/real/process.h"

namespace rq::service {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;

tl::expected<std::string, std::string> read_text(const std::string& path) {
  const auto fail = [&](const char* why) { return tl::unexpected(fmt::format("cannot read configuration {}: {}", path, why)); };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(std::strerror(errno));
  std::string text;
  char buffer[16 * 1024];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0 && text.size() <= kFileBytesMax) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int os = errno;
  ::close(fd);
  if (got < 0) return fail(std::strerror(os));
  if (text.size() > kFileBytesMax) return fail("it is larger than 1 MiB");
  return text;
}

const char* kind_of(const toml::node& node) {
  if (node.is_floating_point()) return "a float";
  if (node.is_date() || node.is_time() || node.is_date_time()) return "a date or time";
  if (node.is_integer()) return "an integer";
  if (node.is_boolean()) return "a boolean";
  if (node.is_table()) return "a table";
  return "a list";
}

// Adds one table under its dotted name; an error message, or nothing.
std::optional<std::string> flatten(const toml::table& table, const std::string& prefix, broker::ConfigFile& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      out.emplace_back(name, std::monostate{});
      if (auto error = flatten(*inner, name + ".", out)) return error;
    } else if (const auto* number = node.as_integer()) {
      out.emplace_back(name, std::int64_t{number->get()});
    } else if (const auto* flag = node.as_boolean()) {
      out.emplace_back(name, flag->get());
    } else if (const auto* text = node.as_string()) {
      out.emplace_back(name, text->get());
    } else if (const toml::array* list = node.as_array()) {
      std::vector<std::string> items;
      for (const toml::node& item : *list) {
        const auto* element = item.as_string();
        if (element == nullptr) return fmt::format("{}: expected a list of strings, found {} in it", name, kind_of(item));
        items.push_back(element->get());
      }
      out.emplace_back(name, std::move(items));
    } else {
      return fmt::format("{}: no key takes {}", name, kind_of(node));
    }
  }
  return std::nullopt;
}

}  // namespace

tl::expected<broker::ConfigFile, std::string> read_config_file(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  try {
    const toml::table table = toml::parse(*text, path);
    broker::ConfigFile flat;
    if (auto error = flatten(table, "", flat)) return tl::unexpected(fmt::format("{}: {}", path, *error));
    return flat;
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return tl::unexpected(fmt::format("{}: line {}, column {}: {}", path, at.line, at.column, error.description()));
  }
}

tl::expected<broker::Config, std::string> load(const std::string& path, const broker::Environment& environment) {
  broker::ConfigFile file;
  if (!path.empty()) {
    auto read = read_config_file(path);
    if (!read) return tl::unexpected(read.error());
    file = std::move(*read);
    // By itself first, so that what is wrong with the file is reported as the file's.
    if (auto alone = broker::load_config(file, {}); !alone) {
      return tl::unexpected(fmt::format("{}: {}", path, alone.error()));
    }
  }
  return broker::load_config(file, environment);
}

broker::Environment config_environment() {
  broker::Environment variables = real::environment("RUSTQUEUE_");
  variables.merge(real::environment("POD_NAME"));
  return variables;
}

bool FileProbe::exists(const std::string& path) const {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0;
}

bool FileProbe::regular_file(const std::string& path) const {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace rq::service
