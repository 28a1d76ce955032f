// TLS with OpenSSL at both ends, certificates from scripts/dev-certs: versions, client certificates, refusals (page 31
// sections 2.9 and 3.9, page 10 section 3.4, D-04, D-49a).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "tests/process/program.h"
#include "tests/process/tls_client.h"

namespace rq::test {
namespace {

constexpr const char* kAskForTls = R"({"feature_negotiation":true,"tls_v1":true})";

class Tls : public testing::TestWithParam<const char*> {
 protected:
  // A server whose [security.tls] has these lines behind its two files.
  void start(const std::string& tls, const std::string& more = "") {
    const std::string path = scratch.write(
        "config.toml", "[storage]\nmin_free_bytes = 0\ndisk_high_watermark_percent = 100\ndisk_low_watermark_percent = 99\n" +
                           more + "[security.tls]\ncertificate_file = \"" + certificates.file("node-1.pem") +
                           "\"\nprivate_key_file = \"" + certificates.file("node-1.key") + "\"\n" + tls);
    program = std::make_unique<Program>(std::vector<std::string>{"--config", path},
                                        std::map<std::string, std::string>{{"RUSTQUEUE_TCP_ADDRESS", "127.0.0.1:0"},
                                                                           {"RUSTQUEUE_HTTP_ADDRESS", "127.0.0.1:0"},
                                                                           {"RUSTQUEUE_DATA_PATH", scratch.path("data")},
                                                                           {"RUSTQUEUE_IO_THREADS", GetParam()}});
  }
  int port() {
    if (port_ == 0) port_ = field(program->wait_for_line("serving"), "tcp");
    EXPECT_GT(port_, 0) << program->err();
    return port_;
  }
  std::string ca() const { return "client_ca_file = \"" + certificates.file("ca.pem") + "\"\n"; }
  // True when the handshake works and a publish over it is answered.
  bool works(const TlsClientOptions& options) {
    TlsClient client(port());
    client.send(identify_frame(kAskForTls));
    EXPECT_NE(client.frame().find(R"("tls_v1":true)"), std::string::npos);
    if (!client.start_tls(options) || client.frame() != "OK") return false;
    client.send(command_with_body("PUB t", "x"));
    return client.frame() == "OK";
  }
  ScratchDirectory scratch;
  Certificates certificates = make_certificates(scratch.path("certificates"));
  std::unique_ptr<Program> program;
  int port_ = 0;
};
INSTANTIATE_TEST_SUITE_P(IoThreads, Tls, testing::Values("0", "2"), [](const auto& mode) { return std::string(mode.param); });

TEST_P(Tls, B_94_TheCertificatesVerifyAndOnlyTheirOwnerReadsTheKeys) {
  for (const char* name : {"ca.key", "node-1.key", "discovery.token"}) {
    struct stat facts {};
    ASSERT_EQ(::stat(certificates.file(name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777, 0600u) << name;
  }
  const auto run = [](const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); };
  const std::string node = certificates.file("node-1.pem");
  EXPECT_EQ(run("openssl verify -CAfile " + certificates.file("ca.pem") + " -purpose sslserver " + node), 0);
  EXPECT_EQ(run("openssl verify -CAfile " + certificates.file("ca.pem") + " -purpose sslclient " + node), 0);
  for (const char* name : {"rustqueue-1", "localhost"}) {
    EXPECT_EQ(run("openssl x509 -in " + node + " -noout -checkhost " + name + " | grep 'does match'"), 0) << name;
  }
  EXPECT_EQ(run("openssl x509 -in " + node + " -noout -checkip 127.0.0.1 | grep 'does match'"), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(certificates.directory), std::filesystem::directory_iterator()), 5)
      << "nothing is left behind";
}

TEST_P(Tls, BothVersionsWorkAndTheServerProvesItself) {
  start("");
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClientOptions options;
    options.version = version;
    options.trusted = &certificates;
    EXPECT_TRUE(works(options)) << version;
  }
  TlsClientOptions old;
  old.version = TLS1_1_VERSION;
  EXPECT_FALSE(works(old)) << "1.2 is the least";
}

TEST_P(Tls, TheMinimumVersionIsConfigurable) {
  start("min_version = \"tls1.3\"\n");
  TlsClientOptions options;
  options.version = TLS1_2_VERSION;
  EXPECT_FALSE(works(options));
  options.version = TLS1_3_VERSION;
  EXPECT_TRUE(works(options));
}

TEST_P(Tls, B_32_WithMutualTlsOnlyACertificateOfTheCaIsLetIn) {
  start("require_client_certificate = true\n" + ca());
  const Certificates foreign = make_certificates(scratch.path("foreign"));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClientOptions options;
    options.version = version;
    EXPECT_FALSE(works(options)) << "none";
    options.own = &foreign;
    EXPECT_FALSE(works(options)) << "of a foreign CA";
    options.own = &certificates;
    EXPECT_TRUE(works(options));
  }
}

// An HTTP server for one request: keeps its head, grants everything.
class OneAnswer {
 public:
  OneAnswer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() { head(); }
  // Waits for the request; "" when the listener was closed before one came.
  std::string head() {
    ::shutdown(listener_, SHUT_RD);  // a request that has come is accepted still
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
    return head_;
  }
  int port = 0;

 private:
  void serve() {
    const int stream = ::accept(listener_, nullptr, nullptr);
    if (stream < 0) return;
    char buffer[4'096];
    for (ssize_t got; head_.find("\r\n\r\n") == std::string::npos && (got = ::read(stream, buffer, sizeof buffer)) > 0;)
      head_.append(buffer, static_cast<std::size_t>(got));
    const std::string body =
        R"({"ttl":60,"authorizations":[{"topic":".*","channels":[".*"],"permissions":["subscribe","publish"]}]})";
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::write(stream, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    ::close(stream);
  }
  int listener_;
  std::string head_;
  std::thread thread_;
};

TEST_P(Tls, B_32_TheNameInTheClientsCertificateReachesTheAuthServer) {
  OneAnswer auth;
  start("require_client_certificate = true\n" + ca(),
        "[security]\nauth_http_addresses = [\"127.0.0.1:" + std::to_string(auth.port) + "\"]\n");
  TlsClient client(port());
  client.send(identify_frame(kAskForTls));
  EXPECT_NE(client.frame().find(R"("auth_required":true)"), std::string::npos);
  TlsClientOptions options;
  options.own = &certificates;
  ASSERT_TRUE(client.start_tls(options));
  EXPECT_EQ(client.frame(), "OK");
  client.send(command_with_body("AUTH", "s"));
  EXPECT_EQ(client.frame(), R"({"identity":"","identity_url":"","permission_count":1})");
  EXPECT_TRUE(auth.head().starts_with("GET /auth?common_name=rustqueue-1&remote_ip=127.0.0.1&secret=s&tls=true HTTP/1.1\r\n"));
  client.send(command_with_body("PUB t", "x"));
  EXPECT_EQ(client.frame(), "OK");
}

TEST_P(Tls, TheOtherPoliciesTakeAnyCertificateOrNone) {
  const Certificates foreign = make_certificates(scratch.path("foreign"));
  TlsClientOptions none, strange;
  strange.own = &foreign;
  start("client_auth = \"require\"\n");
  EXPECT_FALSE(works(none));
  EXPECT_TRUE(works(strange));
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0);
  port_ = 0;
  start("client_auth = \"request\"\n");
  EXPECT_TRUE(works(none));
  EXPECT_TRUE(works(strange));
}

TEST_P(Tls, AHandshakeThatFailsClosesWithoutAFrameInClear) {
  start("");
  TlsClient client(port());
  client.send(identify_frame(kAskForTls));
  client.frame();
  client.send("PUB t\nthis is no handshake\n");
  // An alert record at most: never the start of a frame.
  const std::string rest = client.frame();
  EXPECT_EQ(rest.find("E_"), std::string::npos) << rest;
  EXPECT_TRUE(works({}));
}

TEST_P(Tls, LargeMessagesGoBothWaysAndTheEndIsAnnounced) {
  start("");
  TlsClient client(port());
  client.send(identify_frame(kAskForTls));
  client.frame();
  ASSERT_TRUE(client.start_tls({}));
  EXPECT_EQ(client.frame(), "OK");
  const std::string body(3'000'000, 'b');
  client.send(command_with_body("PUB t", body));
  EXPECT_EQ(client.frame(), "OK");
  client.send("SUB t c\nRDY 1\n");
  EXPECT_EQ(client.frame(), "OK");
  const std::string message = client.frame();
  EXPECT_EQ(message.substr(message.size() - body.size()), body);
  client.send("ASDF\n");
  EXPECT_EQ(client.frame(), "E_INVALID invalid command ASDF");
  EXPECT_TRUE(client.said_goodbye());
}

TEST_P(Tls, FilesThatDoNotFitTogetherStopTheStartAndAreNamed) {
  const Certificates foreign = make_certificates(scratch.path("foreign"));
  std::filesystem::copy_file(foreign.file("node-1.key"), certificates.file("node-1.key"),
                             std::filesystem::copy_options::overwrite_existing);
  start("");
  EXPECT_EQ(program->wait(), 1);
  EXPECT_NE(program->err().find("node-1.key"), std::string::npos) << program->err();
}

}  // namespace
}  // namespace rq::test
