// An NSQ client over TLS against a running program, with OpenSSL on a blocking socket: written apart from io/real, so that both
// ends do not share a mistake.
#pragma once

#include <openssl/ssl.h>

#include <string>

namespace rq::test {

struct Certificates {
  std::string directory;  // as scripts/dev-certs makes it
  std::string file(const std::string& name) const { return directory + "/" + name; }
};
Certificates make_certificates(const std::string& directory);

struct TlsClientOptions {
  const Certificates* own = nullptr;      // its certificate; null: none is shown
  const Certificates* trusted = nullptr;  // the CA that must have signed the server's
  int version = 0;                        // TLS1_2_VERSION and so on; 0: what both can
};

class TlsClient {
 public:
  explicit TlsClient(int port);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;

  void send(const std::string& bytes);  // over TLS once it runs
  std::string frame();                  // the next frame's payload; empty at the end
  bool start_tls(const TlsClientOptions& options);
  bool ended();         // the server closes now: nothing more comes
  bool said_goodbye();  // ... and said so over TLS
  std::string cipher() const { return SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl_)); }
  std::string version() const { return SSL_get_version(ssl_); }

 private:
  bool receive(char* to, std::size_t bytes);

  int fd_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

std::string identify_frame(const std::string& json);
std::string command_with_body(const std::string& line, const std::string& body);

}  // namespace rq::test
