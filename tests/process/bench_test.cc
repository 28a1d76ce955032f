// rustqueue-bench and rustqueue-qualify from outside, the first one against a real rustqueued on loopback (page 60 section 6).
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <regex>

#include "tests/process/program.h"

namespace rq::test {
namespace {

// One scenario, two pairs, each metric of the candidate `ratio` times that of the baseline.
std::string comparison(double ratio) {
  std::string runs;
  for (int i = 0; i < 4; ++i) {
    const bool candidate = i == 1 || i == 2;
    runs += std::string(i > 0 ? "," : "") + R"({"case":"raw_write","pair":)" + std::to_string(i / 2 + 1) + R"(,"sequence":)" +
            std::to_string(i + 1) + R"(,"position_in_pair":)" + std::to_string(i % 2 + 1) + R"(,"variant":")" +
            (candidate ? "candidate" : "baseline") +
            R"(","commit":"c","benchmark_exit_code":0,"metrics":{"messages":10,"consumers":0,)" +
            R"("publish_messages_per_second":)" + std::to_string(candidate ? 1000 * ratio : 1000.0) +
            R"(,"pub_ack_p99_us":5,"rss_peak_bytes":6}})";
  }
  const std::string build = R"({"revision":"r","commit":"c","image_id":"i","binary_sha256":"s"})";
  return R"({"schema_version":1,"release":"r","generated_at_utc":"t","baseline":)" + build + R"(,"candidate":)" + build +
         R"(,"environment":{},"protocol":{"pairs":2,"warmup_seconds":1,"measurement_seconds":1,"drain_timeout_seconds":1,)" +
         R"("alternating_order":"AB_then_BA","bootstrap_iterations":1000,"bootstrap_seed":802,"throughput_regression_ratio":0.95,)" +
         R"("latency_rss_regression_ratio":1.1,"scenarios":["raw_write"]},"runs":[)" + runs + "]}";
}

class Bench : public testing::Test {
 protected:
  void serve() {
    const std::string config = scratch.write(
        "config.toml", "[storage]\nmin_free_bytes = 0\ndisk_high_watermark_percent = 100\ndisk_low_watermark_percent = 99\n");
    broker = std::make_unique<Program>(std::vector<std::string>{"--config", config},
                                       std::map<std::string, std::string>{{"RUSTQUEUE_TCP_ADDRESS", "127.0.0.1:0"},
                                                                          {"RUSTQUEUE_HTTP_ADDRESS", "127.0.0.1:0"},
                                                                          {"RUSTQUEUE_DATA_PATH", scratch.path("data")}});
    const std::string serving = broker->wait_for_line("serving");
    ASSERT_NE(serving, "") << broker->out() << broker->err();
    tcp = field(serving, "tcp");
    http = field(serving, "http");
    address = "127.0.0.1:" + std::to_string(tcp);
  }
  void post(const std::string& target) {
    Connection connection(http);
    connection.send("POST " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    EXPECT_TRUE(connection.receive(10'000).starts_with("HTTP/1.1 200 ")) << target;
  }
  std::unique_ptr<Program> bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--address", address});
    return std::make_unique<Program>(arguments, std::map<std::string, std::string>{}, RQ_BENCH);
  }
  static boost::json::object report(const Program& program) {
    boost::json::error_code failed;
    const boost::json::value value = boost::json::parse(program.out(), failed);
    EXPECT_FALSE(failed) << program.out();
    return value.is_object() ? value.get_object() : boost::json::object();
  }
  ScratchDirectory scratch;
  std::unique_ptr<Program> broker;
  std::string address = "127.0.0.1:1";
  int tcp = 0, http = 0;
};

TEST_F(Bench, AgainstARealBrokerEverythingIsPublishedAndDelivered) {
  serve();
  auto run = bench({"--messages", "3000", "--batch-size", "16", "--producers", "4", "--consumers", "3", "--json"});
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_EQ(run->err(), "") << "progress is for terminals";
  const boost::json::object json = report(*run);
  EXPECT_EQ(json.at("messages").as_int64(), 3000);
  EXPECT_EQ(json.at("received_unique_messages").as_int64(), 3000);
  EXPECT_EQ(json.at("missing_messages").as_int64(), 0);
  EXPECT_EQ(json.at("duplicate_messages").as_int64(), 0);
  EXPECT_EQ(json.at("address").as_string(), address);
  EXPECT_TRUE(json.at("topic").as_string().starts_with("benchmark-"));
  EXPECT_GT(json.at("publish_messages_per_second").to_number<double>(), 0);
  EXPECT_GT(json.at("latency_us_p50").as_int64(), 0);
  EXPECT_TRUE(broker->running());
}

TEST_F(Bench, AFixedRateRunWithWarmUpOnAKnownTopicPrintsALegibleReport) {
  serve();
  auto run = bench({"--rate", "400", "--duration-seconds", "1", "--warmup-seconds", "1", "--producers", "2", "--consumers", "1",
                    "--topic", "known", "--reuse-topic"});
  EXPECT_EQ(run->wait(), 0) << run->err();
  for (const char* words : {"fixed rate 400/s to known: 400 messages", "400 unique, 0 missing, 0 twice", "latency us p50"})
    EXPECT_NE(run->out().find(words), std::string::npos) << run->out();
}

TEST_F(Bench, AHostNameLeadsToTheBroker) {
  serve();
  address = "localhost:" + std::to_string(tcp);
  auto run = bench({"--messages", "100", "--consumers", "1", "--json"});
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_EQ(report(*run).at("address").as_string(), address);
}

TEST_F(Bench, L_17_AtTheDrainLimitTheReportIsPrintedAndTheStatusIsOne) {
  serve();
  post("/topic/create?topic=held");
  post("/topic/pause?topic=held");
  auto run = bench({"--topic", "held", "--reuse-topic", "--messages", "100", "--drain-timeout-seconds", "5", "--json"});
  EXPECT_EQ(run->wait(), 1);
  EXPECT_EQ(run->err(), "");
  const boost::json::object json = report(*run);
  EXPECT_TRUE(json.at("drain_timed_out").as_bool());
  EXPECT_EQ(json.at("messages").as_int64(), 100);
  EXPECT_EQ(json.at("missing_messages").as_int64(), 100);
  EXPECT_FALSE(json.at("delivery_complete").as_bool());
}

TEST_F(Bench, ProgressIsALineOnATerminalAndGoneAtTheEnd) {
  serve();
  Program run({"--address", address, "--rate", "200", "--warmup-seconds", "2", "--duration-seconds", "2"}, {}, RQ_BENCH,
              Program::Stderr::terminal);
  EXPECT_EQ(run.wait(), 0) << run.err();
  const std::string clear = "\r\x1b[K", counts = "[1-9][0-9]* published, [0-9]+ received";
  // One line a second, so that each of two seconds has its own.
  for (const char* state : {"warm-up, publishing: ", "publishing: "})
    EXPECT_TRUE(std::regex_search(run.err(), std::regex("\r\x1b\\[K" + (state + counts)))) << run.err();
  EXPECT_TRUE(run.err().ends_with("received" + clear)) << run.err();
  EXPECT_EQ(run.err().find('\n'), std::string::npos) << run.err();
  EXPECT_TRUE(run.out().starts_with("fixed rate 200/s")) << run.out();
}

// Runs a program with its output on a device that is always full.
std::unique_ptr<Program> into_full(const char* program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"-c", "exec \"$0\" \"$@\" >/dev/full", program});
  return std::make_unique<Program>(arguments, std::map<std::string, std::string>{}, "/bin/sh");
}

TEST_F(Bench, AReportThatCannotBeWrittenIsAFailure) {
  serve();
  const std::string why = "Error: the report cannot be written: No space left on device\n";
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments{"--address", address, "--messages", "10", "--consumers", "0"};
    if (json) arguments.push_back("--json");
    const auto run = into_full(RQ_BENCH, arguments);
    EXPECT_EQ(run->wait(), 1);
    EXPECT_EQ(run->err(), why);
  }
  const auto verdict = into_full(RQ_QUALIFY, {"--input", scratch.write("in.json", comparison(1.0))});
  EXPECT_EQ(verdict->wait(), 1);
  EXPECT_EQ(verdict->err(), why);
}

TEST_F(Bench, ABrokerThatIsNotThereIsAnErrorWithoutAReport) {
  auto run = bench({"--json"});
  EXPECT_EQ(run->wait(), 1);
  EXPECT_EQ(run->out(), "");
  EXPECT_TRUE(run->err().starts_with("Error: ")) << run->err();
  EXPECT_NE(run->err().find("cannot connect to 127.0.0.1:1"), std::string::npos) << run->err();
}

TEST_F(Bench, ABrokerThatIsKilledEndsTheRun) {
  serve();
  auto run = bench({"--duration-seconds", "20", "--consumers", "1"});
  EXPECT_EQ(bench({"--messages", "50"})->wait(), 0);
  broker->signal(SIGKILL);
  EXPECT_EQ(run->wait(), 1);
  EXPECT_EQ(run->out(), "");
  EXPECT_TRUE(run->err().starts_with("Error: ")) << run->err();
}

TEST_F(Bench, WrongUseAndBrokenRulesAreToldApart) {
  auto rate = bench({"--rate", "15"});
  EXPECT_EQ(rate->wait(), 1);
  EXPECT_NE(rate->err().find("--rate 15 is below the number of producers, 16"), std::string::npos) << rate->err();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--bogus"}, {"--messages", "many"}, {"--rate", "-1"}}) {
    auto wrong = bench(arguments);
    EXPECT_EQ(wrong->wait(), 2) << wrong->err();
    EXPECT_EQ(wrong->out(), "");
    EXPECT_TRUE(arguments.size() < 2 || wrong->err().find("\"" + arguments[1] + "\" is no whole number") != std::string::npos);
  }
  Program port({"--address", "127.0.0.1:69686"}, {}, RQ_BENCH);  // 4150 + 65536
  EXPECT_EQ(port.wait(), 1);
  EXPECT_NE(port.err().find("no such host and port"), std::string::npos) << port.err();
  auto help = bench({"--help"});
  EXPECT_EQ(help->wait(), 0);
  for (const char* flag :
       {"--address", "--topic", "--messages", "--message-bytes", "--producers", "--consumers", "--batch-size", "--warmup-seconds",
        "--duration-seconds", "--rate", "--drain-timeout-seconds", "--reuse-topic", "--json"})
    EXPECT_NE(help->out().find(flag), std::string::npos) << flag;
  auto version = bench({"--version"});
  EXPECT_EQ(version->wait(), 0);
  EXPECT_EQ(version->out(), "rustqueue-bench " RQ_VERSION "\n");
}

TEST_F(Bench, QualifyNamesTheRuleThatItsInputBreaks) {
  const std::string path = scratch.write("in.json", "{\"schema_version\":1}");
  Program broken({"--input", path}, {}, RQ_QUALIFY);
  EXPECT_EQ(broken.wait(), 1);
  EXPECT_EQ(broken.out(), "");
  EXPECT_EQ(broken.err(), "Error: " + path + ": release is missing\n");
  Program missing({"--input", scratch.path("none")}, {}, RQ_QUALIFY);
  EXPECT_EQ(missing.wait(), 1);
  Program without({}, {}, RQ_QUALIFY);
  EXPECT_EQ(without.wait(), 2);
}

TEST_F(Bench, QualifyPrintsItsVerdictAndExitsByIt) {
  for (const double ratio : {1.0, 0.9}) {
    Program program({"--input", scratch.write("in.json", comparison(ratio))}, {}, RQ_QUALIFY);
    EXPECT_EQ(program.wait(), ratio < 0.95 ? 1 : 0) << program.err();
    EXPECT_EQ(program.err(), "");
    EXPECT_EQ(report(program).at("verdict").at("status").as_string(), ratio < 0.95 ? "fail" : "pass");
    EXPECT_EQ(report(program).at("statistics").as_array().size(), 1u);
  }
}

// scripts/bench qualify on one build as both sides, as short as the rules allow.
class Qualify : public testing::Test {
 protected:
  std::unique_ptr<Program> compare(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"python3",     RQ_SOURCE_DIR "/tests/bench/qualify.py",
                                       "--baseline",  RQ_PROGRAM,
                                       "--candidate", RQ_PROGRAM,
                                       "--bench",     RQ_BENCH,
                                       "--qualify",   RQ_QUALIFY,
                                       "--dir",       scratch.path("runs"),
                                       "--out",       scratch.path("in.json"),
                                       "--any-disk",  "--pairs",
                                       "1",           "--warmup",
                                       "1",           "--measure",
                                       "1",           "--drain",
                                       "60",          "--iterations",
                                       "1000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::map<std::string, std::string> environment;
    for (const char* name : {"PATH", "HOME"})
      if (const char* text = std::getenv(name)) environment[name] = text;
    return std::make_unique<Program>(arguments, environment, "/usr/bin/env");
  }
  ScratchDirectory scratch;
};

TEST_F(Qualify, TwoBuildsAreMeasuredInPairsAndJudged) {
  const auto run = compare({"--calibration-pairs", "0", "--baseline-commit", "one", "--candidate-commit", "two"});
  const int status = run->wait();
  boost::json::error_code failed;
  const boost::json::value out = boost::json::parse(run->out(), failed);
  ASSERT_FALSE(failed) << run->out() << run->err();
  // Which verdict is chance here; that there is one says that no rule was broken.
  EXPECT_EQ(out.at("verdict").at("status").as_string(), status == 0 ? "pass" : "fail") << run->err();
  EXPECT_EQ(out.at("statistics").as_array().size(), 4u);
  ASSERT_EQ(out.at("runs").as_array().size(), 6u);
  EXPECT_EQ(out.at("runs").at(0).at("commit").as_string(), "one");
  EXPECT_EQ(out.at("runs").at(1).at("commit").as_string(), "two");
  EXPECT_EQ(out.at("runs").at(5).at("metrics").at("mode").as_string(), "fixed-rate");
  EXPECT_GT(out.at("runs").at(5).at("metrics").at("rss_peak_bytes").as_int64(), 1'000'000);
}

TEST_F(Qualify, AMachineWhoseRunsDifferTooMuchComparesNothing) {
  const auto run = compare({"--calibration-pairs", "1", "--scenarios", "low_load_latency", "--spread=-1,0.1"});
  EXPECT_EQ(run->wait(), 1);
  EXPECT_EQ(run->out(), "");
  EXPECT_NE(run->err().find("Error: runs of one build differ by more than -100 % of throughput"), std::string::npos)
      << run->err();
}

}  // namespace
}  // namespace rq::test
