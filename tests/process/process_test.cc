// The program from outside: command line, exit statuses, signals, log lines (page 31 sections 1.1 to 1.9).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "tests/process/program.h"

namespace rq::test {
namespace {

class Process : public testing::Test {
 protected:
  std::map<std::string, std::string> environment(const std::string& data = "data") const {
    return {{"RUSTQUEUE_TCP_ADDRESS", "127.0.0.1:0"},
            {"RUSTQUEUE_HTTP_ADDRESS", "127.0.0.1:0"},
            {"RUSTQUEUE_DATA_PATH", scratch.path(data)},
            {"RUSTQUEUE_IO_THREADS", io_threads}};
  }
  std::string config(const std::string& text) const { return scratch.write("config.toml", text); }
  // Thresholds that fit any machine.
  static std::string roomy() {
    return "[storage]\nmin_free_bytes = 0\ndisk_high_watermark_percent = 100\ndisk_low_watermark_percent = 99\n";
  }
  static std::string snapshot(const std::string& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      files[entry.path()] = entry.is_regular_file() ? read_text(entry.path()) : "";
    }
    std::string text;
    for (const auto& [path, content] : files) text += path + "\n" + content + "\n";
    return text;
  }
  ScratchDirectory scratch;
  std::string io_threads = "0";
};

// What serves does it with sockets on the loop and on threads of their own.
class Served : public Process, public testing::WithParamInterface<const char*> {
 protected:
  Served() { io_threads = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(IoThreads, Served, testing::Values("0", "2"), [](const auto& mode) { return std::string(mode.param); });

TEST_F(Process, B_01_CapabilitiesAreWrittenWhateverTheConfigurationSays) {
  const std::string broken = config("not toml at all [");
  Program program({"--capabilities-output", scratch.path("out")}, {{"RUSTQUEUE_CONFIG", broken}});
  EXPECT_EQ(program.wait(), 0) << program.err();
  const boost::json::object object = boost::json::parse(read_text(scratch.path("out"))).as_object();
  EXPECT_EQ(object.size(), 8u);
  EXPECT_TRUE(object.at("binary_version").is_string());
  EXPECT_EQ(object.at("data_format").as_int64(), 7);
  EXPECT_EQ(object.at("minimum_reader_feature_level").as_int64(), 1);
  EXPECT_EQ(object.at("maximum_reader_feature_level").as_int64(), 2);
  EXPECT_EQ(object.at("maximum_writer_feature_level").as_int64(), 2);
  EXPECT_EQ(object.at("maximum_message_bytes").as_int64(), 104'857'600);
  EXPECT_EQ(object.at("maximum_batch_bytes").as_int64(), 134'217'728);
  EXPECT_EQ(object.at("websocket_ttl_live_v1").as_bool(), true);
}

TEST_F(Process, B_02_TheExampleFileIsValidAndCheckingTouchesNothing) {
  Program program({"--check-config", "--config=" RQ_SOURCE_DIR "/rustqueued.example.toml"}, environment());
  EXPECT_EQ(program.wait(), 0) << program.err();
  EXPECT_EQ(program.out(), "configuration is valid\n");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("data")));
}

TEST_F(Process, B_03_AnUnknownKeyOrSectionIsAnErrorThatNamesFileAndKey) {
  for (const char* text : {"[limits]\nbogus = 1\n", "[bogus]\n"}) {
    const std::string path = config(text);
    Program program({"--config", path}, environment());
    EXPECT_EQ(program.wait(), 1) << text;
    EXPECT_TRUE(program.err().starts_with("Error: ")) << program.err();
    EXPECT_NE(program.err().find(path), std::string::npos) << program.err();
    EXPECT_NE(program.err().find("bogus"), std::string::npos) << program.err();
  }
  Program flag({"--bogus"}, environment());
  EXPECT_EQ(flag.wait(), 2);
  Program positional({"bogus"}, environment());
  EXPECT_EQ(positional.wait(), 2);
}

TEST_F(Process, AFileThatCannotBeParsedIsNamedWithLineAndColumn) {
  const std::string path = config("[node]\nid = = 3\n");
  Program program({"--check-config", "--config", path}, environment());
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(program.err().find(path + ": line 2, column "), std::string::npos) << program.err();
}

TEST_F(Process, AFileThatIsNotThereIsNamed) {
  Program program({"--check-config", "--config", scratch.path("none.toml")}, environment());
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(program.err().find(scratch.path("none.toml")), std::string::npos) << program.err();
}

TEST_F(Process, ValuesOfAWrongTypeAreNamed) {
  for (const char* text : {"[node]\nid = 1.5\n", "[node]\nid = \"1\"\n", "[node]\nid = 1979-05-27\n", "[node]\nid = [1]\n"}) {
    Program program({"--check-config", "--config", config(text)}, environment());
    EXPECT_EQ(program.wait(), 1) << text;
    EXPECT_NE(program.err().find("node.id"), std::string::npos) << program.err();
  }
}

TEST_F(Process, B_06_AMalformedVariableIsNamed) {
  for (const auto& [name, value] : {std::pair{"RUSTQUEUE_WEBSOCKET_ENABLED", "yes"}, {"RUSTQUEUE_MAX_TOPICS", ""}}) {
    auto variables = environment();
    variables[name] = value;
    Program program({"--check-config"}, variables);
    EXPECT_EQ(program.wait(), 1) << name;
    EXPECT_NE(program.err().find(name), std::string::npos) << program.err();
  }
}

TEST_F(Process, B_11_AnEmptyTokenFileIsAValidConfigurationAndNoStart) {
  const std::string path = config(roomy() + "[security]\nadmin_token_file = \"" + scratch.write("admin", "") + "\"\n");
  Program check({"--check-config", "--config", path}, environment());
  EXPECT_EQ(check.wait(), 0) << check.err();
  Program start({"--config", path}, environment());
  EXPECT_EQ(start.wait(), 1);
  EXPECT_TRUE(start.err().starts_with("Error: ")) << start.err();
}

TEST_F(Process, VersionAndHelpAreAnswered) {
  Program version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.out(), "rustqueued " RQ_VERSION "\n");
  Program help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_NE(help.out().find("--check-config"), std::string::npos);
}

TEST_P(Served, B_09_ASecondProcessOnOneDirectoryEndsAndTheFirstGoesOn) {
  const std::string path = config(roomy());
  Program first({"--config", path}, environment());
  const std::string serving = first.wait_for_line("serving");
  ASSERT_NE(serving, "") << first.out() << first.err();
  Program second({"--config", path}, environment());
  EXPECT_EQ(second.wait(), 1);
  EXPECT_TRUE(second.err().starts_with("Error: ")) << second.err();
  EXPECT_TRUE(first.running());
  Connection client(field(serving, "tcp"));
  client.send(std::string("  V2PUB t\n\0\0\0\x05hello", 19));
  EXPECT_EQ(client.receive(10), std::string("\0\0\0\x06\0\0\0\0OK", 10));
}

// Page 20: the lock file names its process; design: half of the descriptors at most are logs being written.
TEST_P(Served, TheLockFileNamesTheProcessAndTheLogWhatItMayOpen) {
  Program program({}, environment());
  const std::string starting = program.wait_for_line("starting");
  ASSERT_NE(program.wait_for_line("serving"), "") << program.err();
  EXPECT_EQ(read_text(scratch.path("data") + "/.rustqueue.lock"), std::to_string(program.pid()) + "\n");
  EXPECT_EQ(field(starting, "write_handles"), std::min(field(starting, "file_limit") / 2, 16'384));
}

TEST_P(Served, B_10_AnotherNodesDirectoryIsRefusedAndUnchanged) {
  {
    Program first({}, environment());
    ASSERT_NE(first.wait_for_line("serving"), "") << first.err();
    first.signal(SIGTERM);
    EXPECT_EQ(first.wait(), 0) << first.err();
  }
  std::filesystem::remove(scratch.path("data") + "/.rustqueue.lock");
  const std::string before = snapshot(scratch.path("data"));
  auto variables = environment();
  variables["RUSTQUEUE_NODE_ID"] = "2";
  Program second({}, variables);
  EXPECT_EQ(second.wait(), 1);
  EXPECT_TRUE(second.err().starts_with("Error: ")) << second.err();
  std::filesystem::remove(scratch.path("data") + "/.rustqueue.lock");
  EXPECT_EQ(snapshot(scratch.path("data")), before);
}

TEST_P(Served, B_12_SigtermEndsItCleanlyWithAndWithoutAnIdleConsumer) {
  const std::string path = config(roomy() + "[shutdown]\ngrace_seconds = 1\n");
  for (const bool consumer : {false, true}) {
    Program program({"--config", path}, environment());
    const std::string serving = program.wait_for_line("serving");
    ASSERT_NE(serving, "") << program.err();
    std::unique_ptr<Connection> client;
    if (consumer) {
      client = std::make_unique<Connection>(field(serving, "tcp"));
      client->send("  V2SUB t c\nRDY 1\n");
      EXPECT_EQ(client->receive(10), std::string("\0\0\0\x06\0\0\0\0OK", 10));
    }
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 0) << program.err();
  }
}

TEST_P(Served, B_14_EveryLineOfAJsonLogParses) {
  const std::string path = config("log_format = \"json\"\n" + roomy() + "[security]\nkodo_cleanup_token_file = \"" +
                                  scratch.write("unused.token", "t") + "\"\n");
  Program program({"--config", path}, environment());
  ASSERT_NE(program.wait_for_line("serving"), "") << program.err();
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 0) << program.err();
  std::istringstream lines(program.out());
  std::string line;
  int count = 0;
  bool without_effect = false;
  while (std::getline(lines, line)) {
    ++count;
    boost::json::error_code failed;
    const boost::json::value value = boost::json::parse(line, failed);
    ASSERT_FALSE(failed) << line;
    for (const char* key : {"timestamp", "level", "fields", "target"}) EXPECT_TRUE(value.as_object().contains(key)) << line;
    const boost::json::object& fields = value.at("fields").as_object();
    EXPECT_TRUE(fields.contains("message")) << line;
    without_effect = without_effect || fields.at("message").as_string() == "configuration_without_effect";
  }
  EXPECT_GE(count, 3);
  EXPECT_TRUE(without_effect) << "keys without effect are named once at start";
}

TEST_P(Served, VerifyReportsOnADirectoryWithoutChangingIt) {
  const std::string path = config(roomy());
  {
    Program program({"--config", path}, environment());
    const std::string serving = program.wait_for_line("serving");
    ASSERT_NE(serving, "") << program.err();
    Connection client(field(serving, "tcp"));
    client.send(std::string("  V2PUB t\n\0\0\0\x05hello", 19));
    EXPECT_EQ(client.receive(10).size(), 10u);
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait(), 128 + SIGKILL);
  }
  const std::string before = snapshot(scratch.path("data"));
  Program verify({"--verify", scratch.path("data")});
  EXPECT_EQ(verify.wait(), 0) << verify.err();
  EXPECT_NE(verify.out().find("topic t: 1 messages"), std::string::npos) << verify.out();
  EXPECT_EQ(snapshot(scratch.path("data")), before);

  Program nothing({"--verify", scratch.path("none")});
  EXPECT_EQ(nothing.wait(), 1);
  EXPECT_TRUE(nothing.err().starts_with("Error: ")) << nothing.err();
  EXPECT_FALSE(std::filesystem::exists(scratch.path("none")));
}

// What is written meanwhile would look like damage.
TEST_P(Served, VerifyRefusesADirectoryInUseAndLeavesItsBrokerAlone) {
  const std::string path = config(roomy());
  Program program({"--config", path}, environment());
  const std::string serving = program.wait_for_line("serving");
  ASSERT_NE(serving, "") << program.err();
  Program verify({"--verify", scratch.path("data")});
  EXPECT_EQ(verify.wait(), 1);
  EXPECT_EQ(verify.err(), "Error: .rustqueue.lock: another process holds the lock of this data directory\n");
  EXPECT_EQ(verify.out(), "") << "nothing is said of what was not looked at";
  Connection client(field(serving, "tcp"));
  client.send(std::string("  V2PUB t\n\0\0\0\x05hello", 19));
  EXPECT_EQ(client.receive(10).size(), 10u);
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
  Program after({"--verify", scratch.path("data")});
  EXPECT_EQ(after.wait(), 0) << after.err();
}

TEST_P(Served, SalvageMakesADamagedDirectoryOpenAgainAndSaysWhatIsLost) {
  const std::string path = config(roomy());
  {
    Program program({"--config", path}, environment());
    const std::string serving = program.wait_for_line("serving");
    ASSERT_NE(serving, "") << program.err();
    Connection client(field(serving, "tcp"));
    client.send(std::string("  V2PUB t\n\0\0\0\x05hello", 19));
    EXPECT_EQ(client.receive(10).size(), 10u);
    client.send(std::string("PUB t\n\0\0\0\x05world", 15));
    EXPECT_EQ(client.receive(10).size(), 10u);
    Program running({"--salvage", scratch.path("data")});
    EXPECT_EQ(running.wait(), 1);
    EXPECT_EQ(running.out(), "FAILED: another process holds the lock of this data directory\n");
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait(), 128 + SIGKILL);
  }
  const std::string segment = scratch.path("data/topics/74/segments/segment-00000000000000000001.rqlog");
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('!');
  }
  Program refused({"--config", path}, environment());
  EXPECT_EQ(refused.wait(), 1);
  Program salvage({"--salvage", scratch.path("data")});
  EXPECT_EQ(salvage.wait(), 0) << salvage.out() << salvage.err();
  EXPECT_NE(salvage.out().find("cut at offset 77 of 154: record checksum mismatch; positions from 2 on are lost"),
            std::string::npos)
      << salvage.out();
  EXPECT_TRUE(std::filesystem::exists(segment + ".salvage-77"));
  Program program({"--config", path}, environment());
  EXPECT_NE(program.wait_for_line("serving"), "") << program.err();
}

TEST_P(Served, APortThatIsTakenEndsTheStartWithItsAddress) {
  const std::string path = config(roomy());
  Program first({"--config", path}, environment("one"));
  const std::string serving = first.wait_for_line("serving");
  ASSERT_NE(serving, "") << first.err();
  auto variables = environment("two");
  variables["RUSTQUEUE_TCP_ADDRESS"] = "127.0.0.1:" + std::to_string(field(serving, "tcp"));
  Program second({"--config", path}, variables);
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.err().find(variables["RUSTQUEUE_TCP_ADDRESS"]), std::string::npos) << second.err();
}

}  // namespace
}  // namespace rq::test
