// Codecs: the record of a publish, the commands of a connection, frames, CRC-32C.
#include <benchmark/benchmark.h>

#include "core/base/crc32c.h"
#include "core/nsq/command_parser.h"
#include "core/nsq/frames.h"
#include "core/storage/record.h"
#include "core/storage/wal.h"

namespace rq {
namespace {

void crc(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  std::uint32_t value = 0;
  for (auto _ : state) benchmark::DoNotOptimize(value = crc32c(bytes_of(bytes), value));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc)->Name("crc32c")->Arg(44)->Arg(100)->Arg(1024)->Arg(65'536);

void crc_combine(benchmark::State& state) {
  std::uint32_t value = 1;
  for (auto _ : state) benchmark::DoNotOptimize(value = crc32c_combine(value, 77, static_cast<std::uint64_t>(state.range(0))));
}
BENCHMARK(crc_combine)->Name("crc32c_combine")->Arg(1'072)->Arg(104'857'600);

// The frame of a publish and its CRC over the bodies, which is what a PUB costs before the append.
void publish_record(benchmark::State& state) {
  const std::vector<Slice> bodies(static_cast<std::size_t>(state.range(0)),
                                  Slice::copy_of(bytes_of(std::string(static_cast<std::size_t>(state.range(1)), 'x'))));
  std::string frame;
  std::vector<storage::MessageMeta> metas;
  storage::BatchFields fields{1, 1, 1, 1, 1};
  for (auto _ : state) {
    frame.clear();
    metas.clear();
    benchmark::DoNotOptimize(storage::put_batch_frame(frame, fields, bodies, 0, &metas));
    ++fields.index;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(publish_record)->Args({1, 100})->Args({1, 1024})->Args({64, 1024})->Args({200, 100});

void wal_frame(benchmark::State& state) {
  std::string frame;
  storage::WalCommand command;
  for (auto _ : state) {
    frame.clear();
    storage::put_wal_frame(frame, command);
    benchmark::DoNotOptimize(frame.data());
  }
}
BENCHMARK(wal_frame);

// Parses what a connection sent, as the session does, in slices of 64 KiB.
void parse(benchmark::State& state, const std::string& command, bool body) {
  std::string stream;
  std::int64_t commands = 0;
  for (; stream.size() + command.size() <= 65'536; ++commands) stream += command;
  const Slice slice = Slice::copy_of(bytes_of(stream));
  nsq::CommandParser parser;
  for (auto _ : state) {
    parser.push(slice);
    for (auto step = parser.next(); step != nsq::CommandParser::Step::need_more; step = parser.next()) {
      if (step == nsq::CommandParser::Step::line && body) parser.expect_size();
      if (step == nsq::CommandParser::Step::size) parser.take_body();
      if (step == nsq::CommandParser::Step::body) benchmark::DoNotOptimize(parser.take().data());
    }
  }
  state.SetItemsProcessed(state.iterations() * commands);
}
void parse_fin(benchmark::State& state) { parse(state, "FIN 0123456789abcdef\n", false); }
void parse_pub(benchmark::State& state) {
  std::string command = "PUB topic\n";
  put32(command, static_cast<std::uint32_t>(state.range(0)));
  parse(state, command.append(static_cast<std::size_t>(state.range(0)), 'x'), true);
}
BENCHMARK(parse_fin);
BENCHMARK(parse_pub)->Arg(100)->Arg(1024);

void message_header(benchmark::State& state) {
  std::string out;
  std::uint64_t id = 0;
  for (auto _ : state) {
    out.clear();
    nsq::put_message_header(out, 1, 1, ++id, 1024);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(message_header);

}  // namespace
}  // namespace rq
