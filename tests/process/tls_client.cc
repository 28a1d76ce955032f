#include "tests/process/tls_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace rq::test {

Certificates make_certificates(const std::string& directory) {
  std::string command = RQ_SOURCE_DIR "/scripts/dev-certs ";
  command += directory;
  command += " >/dev/null 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return {directory};
}

TlsClient::TlsClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  std::signal(SIGPIPE, SIG_IGN);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{120, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  send("  V2");
}

TlsClient::~TlsClient() {
  SSL_free(ssl_);
  SSL_CTX_free(context_);
  ::close(fd_);
}

void TlsClient::send(const std::string& bytes) {
  if (ssl_ != nullptr) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    return;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

bool TlsClient::receive(char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ssl_ != nullptr ? SSL_read(ssl_, to, static_cast<int>(bytes)) : ::recv(fd_, to, bytes, 0);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::string TlsClient::frame() {
  unsigned char head[8];
  if (!receive(reinterpret_cast<char*>(head), sizeof head)) return "";
  const std::size_t size = std::size_t{head[0]} << 24 | std::size_t{head[1]} << 16 | std::size_t{head[2]} << 8 | head[3];
  std::string payload(size - 4, '\0');
  if (!receive(payload.data(), payload.size())) return "";
  return payload == "_heartbeat_" ? frame() : payload;
}

bool TlsClient::start_tls(const TlsClientOptions& options) {
  context_ = SSL_CTX_new(TLS_client_method());
  if (options.version != 0) {
    SSL_CTX_set_min_proto_version(context_, options.version);
    SSL_CTX_set_max_proto_version(context_, options.version);
  }
  if (options.own != nullptr) {
    EXPECT_EQ(SSL_CTX_use_certificate_file(context_, options.own->file("node-1.pem").c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_, options.own->file("node-1.key").c_str(), SSL_FILETYPE_PEM), 1);
  }
  if (options.trusted != nullptr) {
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    EXPECT_EQ(SSL_CTX_load_verify_file(context_, options.trusted->file("ca.pem").c_str()), 1);
  }
  ssl_ = SSL_new(context_);
  SSL_set1_host(ssl_, "localhost");
  SSL_set_fd(ssl_, fd_);
  return SSL_connect(ssl_) == 1;
}

bool TlsClient::ended() {
  char byte;
  return !receive(&byte, 1);
}

bool TlsClient::said_goodbye() {
  char byte;
  const int got = SSL_read(ssl_, &byte, 1);
  return got <= 0 && SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN;
}

std::string command_with_body(const std::string& line, const std::string& body) {
  std::string out = line + "\n";
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(body.size() >> shift & 0xff));
  return out + body;
}
std::string identify_frame(const std::string& json) { return command_with_body("IDENTIFY", json); }

}  // namespace rq::test
