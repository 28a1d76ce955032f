#include "services/rustqueue-bench/command_line.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/base/text.h"

namespace rq::service {
namespace {

// What is wrong with the text, empty if nothing is.
std::string whole_number(const std::string& text) {
  return parse_decimal(text) ? std::string() : "\"" + text + "\" is no whole number";
}

}  // namespace

BenchCommandLine parse_bench_command_line(int argc, char** argv) {
  BenchCommandLine line;
  load::LoadOptions& o = line.options;
  CLI::App app{"Load generator for any server that speaks NSQ V2: throughput, latency of acknowledgements, verified delivery"};
  app.name("rustqueue-bench");
  app.footer(
      "Exit status: 0 after a good run; 1 when a message is missing or came twice (the report is printed), or when the run "
      "failed;\n"
      "2 for wrong use. Latency is measured from the scheduled time with --rate, otherwise from the time of sending.");
  app.set_version_flag("--version", std::string("rustqueue-bench " RQ_VERSION));
  app.option_defaults()->always_capture_default();
  app.add_option("--address", o.address, "TCP endpoint of a Broker, a proxy or an nsqd")->type_name("HOST:PORT");
  app.add_option("--topic", o.topic, "Topic; a unique suffix is added unless --reuse-topic")->type_name("NAME");
  const auto number = [&](const char* flag, auto& value, const char* what) {
    app.add_option(flag, value, what)->check(CLI::Validator(&whole_number, ""))->type_name("N");
  };
  number("--messages", o.messages, "messages to publish; ignored with --duration-seconds");
  number("--message-bytes", o.message_bytes, "size of a body; from 8 on a body carries its number");
  number("--producers", o.producers, "producer connections, each with one command on its way");
  number("--consumers", o.consumers, "consumer connections on a Channel of their own; 0: publish only");
  number("--batch-size", o.batch_size, "1: PUB; more: MPUB with so many messages");
  number("--warmup-seconds", o.warmup_seconds, "load before the run, on another Topic, not in the figures");
  number("--duration-seconds", o.duration_seconds, "publish for this long");
  number("--rate", o.rate, "messages per second in all, on a fixed schedule; without it: as fast as answers come");
  number("--drain-timeout-seconds", o.drain_timeout_seconds, "limit for complete delivery after the last answer");
  app.add_flag("--reuse-topic", o.reuse_topic, "publish to the Topic as it is named; with consumers, bodies of 16 bytes or more");
  app.add_flag("--json", line.json, "print the report as one JSON object");
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
