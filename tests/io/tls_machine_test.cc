// TLS over memory, both ends of it: what is read does not depend on how the records were cut.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/check.h"
#include "core/base/random.h"
#include "io/real/tls.h"

namespace rq::test {
namespace {

class TlsMachines : public testing::Test {
 protected:
  TlsMachines() {
    directory_ = (std::filesystem::temp_directory_path() / "rq_tls_XXXXXX").string();
    RQ_CHECK(::mkdtemp(directory_.data()) != nullptr);
    const std::string command = RQ_SOURCE_DIR "/scripts/dev-certs " + directory_ + " >/dev/null 2>&1";
    RQ_CHECK(std::system(command.c_str()) == 0);
    ::setenv("SSL_CERT_FILE", (directory_ + "/ca.pem").c_str(), 1);  // what clients trust
    real::TlsOptions options;
    options.certificate_file = directory_ + "/node-1.pem";
    options.private_key_file = directory_ + "/node-1.key";
    server_context_ = std::move(*real::tls_server_context(options));
    client_context_ = std::move(*real::tls_client_context());
    server_ = std::make_unique<real::TlsMachine>(*server_context_);
    const std::string name = "127.0.0.1";
    client_ = std::make_unique<real::TlsMachine>(*client_context_, &name);
  }
  ~TlsMachines() override {
    ::unsetenv("SSL_CERT_FILE");
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  static void move(real::TlsMachine& from, real::TlsMachine& to) {
    const std::size_t bytes = from.pending().size();
    to.feed(from.pending());
    if (bytes > 0) from.sent(bytes);
  }
  void shake_hands() {
    for (int i = 0; i < 10 && !(server_->established() && client_->established()); ++i) {
      if (!client_->established()) client_->handshake();
      move(*client_, *server_);
      if (!server_->established()) server_->handshake();
      move(*server_, *client_);
    }
    ASSERT_TRUE(server_->established() && client_->established());
  }
  // Everything that can be read now; the last result.
  real::TlsMachine::Result read_all(std::string& into, std::size_t room) {
    std::string buffer(room, '\0');
    for (;;) {
      std::size_t got = 0;
      const auto result = server_->read(MutBuf(reinterpret_cast<std::byte*>(buffer.data()), room), got);
      if (result != real::TlsMachine::Result::done) return result;
      into.append(buffer, 0, got);
    }
  }

  std::string directory_;
  real::TlsContext server_context_, client_context_;
  std::unique_ptr<real::TlsMachine> server_, client_;
};

TEST_F(TlsMachines, RecordsCutAnywhereAreReadWholeAndNothingIsAskedForInVain) {
  shake_hands();
  Random random(1);
  std::string sent, received;
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t records = random.between(1, 4); records > 0; --records) {
      const std::string plain(random.between(1, 20'000), static_cast<char>('a' + round % 26));
      ASSERT_TRUE(client_->write(bytes_of(plain)));
      sent += plain;
    }
    for (ConstBuf rest = client_->pending(); !rest.empty();) {
      const std::size_t part = std::min<std::size_t>(rest.size(), random.between(1, 30'000));
      server_->feed(rest.first(part));
      EXPECT_TRUE(server_->may_read());
      rest = rest.subspan(part);
      ASSERT_EQ(read_all(received, random.between(1, 70'000)), real::TlsMachine::Result::need_input);
      EXPECT_FALSE(server_->may_read());
    }
    client_->sent(client_->pending().size());
    ASSERT_EQ(received, sent);
  }
}

TEST_F(TlsMachines, AServerOfAPrivateCaIsTrustedWithItsFileAlone) {
  ::setenv("SSL_CERT_FILE", "/dev/null", 1);
  const std::string name = "127.0.0.1";
  const auto shakes = [&](real::TlsContext context) {
    client_context_ = std::move(context);
    server_ = std::make_unique<real::TlsMachine>(*server_context_);
    client_ = std::make_unique<real::TlsMachine>(*client_context_, &name);
    for (int i = 0; i < 10 && !client_->established(); ++i) {
      if (client_->handshake() == real::TlsMachine::Result::failed) return false;
      move(*client_, *server_);
      server_->handshake();
      move(*server_, *client_);
    }
    return client_->established();
  };
  EXPECT_FALSE(shakes(std::move(*real::tls_client_context())));
  EXPECT_TRUE(shakes(std::move(*real::tls_client_context(directory_ + "/ca.pem"))));
  const auto missing = real::tls_client_context(directory_ + "/none.pem");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("none.pem"), std::string::npos);
}

TEST_F(TlsMachines, TheEndBehindARecordIsReadAfterIt) {
  shake_hands();
  ASSERT_TRUE(client_->write(bytes_of(std::string_view("last"))));
  client_->end();
  move(*client_, *server_);
  std::string received;
  EXPECT_EQ(read_all(received, 100), real::TlsMachine::Result::ended);
  EXPECT_EQ(received, "last");
  EXPECT_TRUE(server_->may_read()) << "the end can be read again";
  EXPECT_EQ(read_all(received, 100), real::TlsMachine::Result::ended);
}

TEST_F(TlsMachines, ADamagedRecordFailsBehindTheOneBeforeIt) {
  shake_hands();
  ASSERT_TRUE(client_->write(bytes_of(std::string_view("good"))));
  move(*client_, *server_);
  ASSERT_TRUE(client_->write(bytes_of(std::string_view("damaged"))));
  std::string damaged(text_of(client_->pending()));
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  server_->feed(bytes_of(damaged));
  std::string received;
  EXPECT_EQ(read_all(received, 100), real::TlsMachine::Result::failed);
  EXPECT_EQ(received, "good");
}

}  // namespace
}  // namespace rq::test
