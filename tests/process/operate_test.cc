// What an operator meets: token files, what logs never show, a bug's last words (page 31 sections 1.5, 1.9 and 5.2).
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/process/program.h"

namespace rq::test {
namespace {

class Operate : public testing::TestWithParam<const char*> {
 protected:
  std::map<std::string, std::string> environment() const {
    return {{"RUSTQUEUE_TCP_ADDRESS", "127.0.0.1:0"},
            {"RUSTQUEUE_HTTP_ADDRESS", "127.0.0.1:0"},
            {"RUSTQUEUE_DATA_PATH", scratch.path("data")},
            {"RUSTQUEUE_IO_THREADS", GetParam()},
            {"RUST_LOG", "debug"}};
  }
  // Thresholds that fit any machine, then more.
  std::string config(const std::string& more) const {
    return scratch.write("config.toml",
                         "[storage]\nmin_free_bytes = 0\ndisk_high_watermark_percent = 100\n"
                         "disk_low_watermark_percent = 99\n" +
                             more);
  }
  static std::string request(const std::string& head, const std::string& body) {
    return head + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\nAuthorization: Bearer the-admin-token\r\n\r\n" + body;
  }
  ScratchDirectory scratch;
};
INSTANTIATE_TEST_SUITE_P(IoThreads, Operate, testing::Values("0", "2"), [](const auto& mode) { return std::string(mode.param); });

TEST_P(Operate, B_11_AnEmptyTokenFilePassesTheCheckAndFailsTheStart) {
  const std::string path = config("[security]\nadmin_token_file = \"" + scratch.write("admin.token", "\n") + "\"\n");
  Program check({"--check-config", "--config", path}, environment());
  EXPECT_EQ(check.wait(), 0) << check.err();
  EXPECT_EQ(check.out(), "configuration is valid\n");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("data")));
  Program start({"--config", path}, environment());
  EXPECT_EQ(start.wait(), 1);
  EXPECT_TRUE(start.err().starts_with("Error: ")) << start.err();
  EXPECT_NE(start.err().find("admin.token"), std::string::npos) << start.err();
  scratch.write("admin.token", "secret\n");
  Program again({"--config", path}, environment());
  EXPECT_NE(again.wait_for_line("serving"), "") << again.err();
}

// At its most talkative, through good requests, bad ones and a clean stop.
TEST_P(Operate, LogsShowNoMessageBodyTokenOrSecretOfAPeer) {
  const std::string path = config("[security]\nadmin_token_file = \"" + scratch.write("admin.token", "the-admin-token") + "\"\n");
  Program program({"--config", path}, environment());
  EXPECT_NE(program.wait_for_line("routes_without_token classes=publish,registry,console"), "") << program.out();
  const std::string serving = program.wait_for_line("serving");
  ASSERT_NE(serving, "") << program.err();
  {
    Connection client(field(serving, "tcp"));
    client.send(std::string("  V2PUB t\n\0\0\0\x0cmarker-bodysSUB t c\nRDY 1\n", 40));
    EXPECT_NE(client.receive(66).find("marker-body"), std::string::npos);
  }
  for (const std::string bad : {"marker-command\n", "AUTH\n", "PUB marker!name\n", "IDENTIFY\n"}) {
    Connection client(field(serving, "tcp"));
    client.send("  V2" + bad + std::string("\0\0\0\x0d", 4) + "marker-secret");
    client.receive(12);
  }
  const int http = field(serving, "http");
  Connection(http).send(request("POST /pub?topic=t", "marker-body"));
  Connection(http).send(request("POST /v1/drain", "{\"marker-body\""));
  Connection drain(http);
  drain.send(request("POST /v1/drain", "{}"));
  EXPECT_NE(drain.receive(100'000).find("\"draining\":true"), std::string::npos);
  EXPECT_NE(program.wait_for_line("drain enabled=true freeze_deliveries=false"), "");
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0) << program.err();
  EXPECT_NE(program.out().find("client_error"), std::string::npos) << program.out();
  EXPECT_NE(program.out().find("stopped released="), std::string::npos) << program.out();
  for (const char* marker : {"marker", "the-admin-token"})
    EXPECT_EQ((program.out() + program.err()).find(marker), std::string::npos) << program.out() << program.err();
}

}  // namespace
}  // namespace rq::test
