// rustqueue-qualify: judges a comparison of two builds (page 60 section 6.2). Exit status: 0 pass; 1 fail, which is printed, or a
// broken rule, which leaves stdout empty; 2 wrong use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <tl/expected.hpp>

#include "bench/print.h"
#include "bench/qualify/verdict.h"

namespace {

constexpr std::size_t kInputBytesMax = 64 * 1'048'576;

tl::expected<std::string, std::string> read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return tl::unexpected(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::string text;
  char buffer[65'536];
  std::size_t got = 0;
  while (text.size() <= kInputBytesMax && (got = std::fread(buffer, 1, sizeof buffer, file)) > 0) text.append(buffer, got);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return tl::unexpected(fmt::format("cannot read {}", path));
  if (text.size() > kInputBytesMax) return tl::unexpected(fmt::format("{} is larger than {} bytes", path, kInputBytesMax));
  return text;
}

int fail(const std::string& why) {
  fmt::print(stderr, "Error: {}\n", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Judges a paired comparison of two builds: pass, or fail with the regressions"};
  app.name("rustqueue-qualify");
  app.footer(
      "Prints the input with statistics and verdict. Exit status: 0 pass; 1 fail or an input that breaks a rule; 2 wrong use.");
  app.set_version_flag("--version", std::string("rustqueue-qualify " RQ_VERSION));
  std::string path;
  app.add_option("--input", path, "the measurements, a JSON document")->required()->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::Error& error) {
    std::cerr << "error: " << error.what() << "\n\n" << app.help();
    return 2;
  }
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto document = rq::qualify::read_document(*text);
  if (!document) return fail(fmt::format("{}: {}", path, document.error()));
  const auto statistics = rq::qualify::judge(*document);
  return rq::bench::print_report(rq::qualify::verdict_text(*document, statistics), rq::qualify::passed(statistics) ? 0 : 1);
}
