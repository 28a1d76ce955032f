// The command parser: any bytes in any pieces give the same steps, and never more memory than was admitted.
#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/nsq/command_parser.h"
#include "core/nsq/mpub.h"
#include "core/nsq/numbers.h"
#include "core/nsq/quote.h"

namespace {

constexpr std::int32_t kBodyMax = 100'000;

// Runs a stream in pieces of `piece` bytes (0: whole) and returns a hash of every step.
std::uint64_t run(std::string_view stream, std::size_t piece) {
  using Step = rq::nsq::CommandParser::Step;
  rq::nsq::CommandParser parser;
  rq::Hasher hasher;
  bool skip = false, in_steps = false;
  while (!stream.empty()) {
    const std::string_view part = stream.substr(0, piece == 0 ? stream.size() : piece);
    stream.remove_prefix(part.size());
    parser.push(rq::Slice::copy_of(rq::bytes_of(part)));
    for (bool more = true; more;) {
      const Step step = parser.next();
      if (step == Step::need_more) break;
      if (step == Step::room) {  // when depends on how the stream is cut
        parser.more_room(parser.room_wanted());
        continue;
      }
      hasher.add(static_cast<std::uint64_t>(step));
      switch (step) {
        case Step::line: {
          const rq::nsq::Command& command = parser.command();
          hasher.add(command.name);
          hasher.add(std::uint64_t{command.param_count});
          for (std::uint32_t i = 0; i < command.param_count && i < command.params.size(); ++i) {
            hasher.add(rq::nsq::quote(command.params[i]));
            hasher.add(rq::nsq::parse_number(command.params[i]).value_or(1));
          }
          skip = command.name == "SKIP";
          in_steps = command.name == "DPUB";
          if (skip || command.name.ends_with("PUB")) parser.expect_size();
          break;
        }
        case Step::size:
          hasher.add(static_cast<std::uint64_t>(parser.size()));
          if (parser.size() <= 0 || parser.size() > kBodyMax) return hasher.value;
          if (skip) {
            parser.skip_body();
          } else {
            parser.take_body(in_steps ? 1 : static_cast<std::uint32_t>(parser.size()));
          }
          break;
        case Step::body: {
          const rq::Slice body = parser.take();
          hasher.add(body.bytes());
          rq::nsq::MpubScanner scanner(body.size(), {1'000, 5'000});
          if (auto error = scanner.advance(body.bytes())) {
            hasher.add(*error);
          } else {
            for (const rq::Slice& message : rq::nsq::mpub_messages(body)) hasher.add(message.bytes());
          }
          break;
        }
        default:
          break;
      }
    }
  }
  return hasher.value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::uint64_t whole = run(stream, 0);
  RQ_CHECK(run(stream, 1 + data[0] % 40) == whole);
  return 0;
}
