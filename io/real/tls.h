// TLS over memory, for one connection: received bytes go in, bytes to send come out, and plain bytes on the other side. No
// socket, no clock; the owner moves the bytes and keeps the deadline.
//
//  I1 During the handshake at most kHandshakeBytesMax are taken in; OpenSSL bounds each record (16 KiB) and the certificates
//     (100 KiB).
//  I2 After `failed` only pending() is of use: it may hold the alert that tells the peer.
//  I3 An idle connection keeps no record buffers.
// There are no session tickets, no renegotiation and no ALPN (page 31 section 3.9).
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "core/base/bytes.h"

namespace rq::real {

enum class ClientCertificates : std::uint8_t { none, request, require, require_verify };

struct TlsOptions {
  std::string certificate_file;  // PEM, the chain with the own certificate first
  std::string private_key_file;  // PEM, the first key in it
  std::string client_ca_file;    // PEM, used by require_verify only
  ClientCertificates client_certificates = ClientCertificates::none;
  bool tls1_3_only = false;  // otherwise 1.2 and 1.3
};

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTlsContext>;

// Reads the files, once. The error names the file and says what is wrong with it.
tl::expected<TlsContext, std::string> tls_server_context(const TlsOptions& options);
// Verifies servers against the trust store of the system and, when it is not empty, the certificates of `ca_file` (PEM). The
// error as above.
tl::expected<TlsContext, std::string> tls_client_context(const std::string& ca_file = {}, bool tls1_3_only = false);

class TlsMachine {
 public:
  static constexpr std::size_t kHandshakeBytesMax = 256 * 1024;
  static constexpr std::size_t kFeedBytes = 16 * 1024;  // a useful size of one feed()

  enum class Result : std::uint8_t { done, need_input, ended, failed };

  // A server; with a name the client of a server that has to prove it.
  explicit TlsMachine(SSL_CTX& context, const std::string* server_name = nullptr);
  ~TlsMachine();
  TlsMachine(const TlsMachine&) = delete;

  void feed(ConstBuf received);
  Result handshake();
  bool established() const { return established_; }
  // done: `got` bytes, at least one; ended: the peer said that it is done.
  Result read(MutBuf out, std::size_t& got);
  // False: read() needs feed() first. To ask OpenSSL costs as much as a small record, whose buffer it takes and gives back.
  bool may_read() const { return !drained_; }
  bool write(ConstBuf plain);  // not empty; all of it is taken, or false: failed
  void end();                  // tells the peer that nothing more comes

  ConstBuf pending() const;  // to be sent
  void sent(std::size_t bytes);

  std::string version() const;      // "TLS1.2", as nsqd writes it
  std::string cipher() const;       // "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"; for TLS 1.3 "Unknown <id>"
  std::string common_name() const;  // of the peer's certificate; empty without one

 private:
  void collect();  // what OpenSSL wants to send

  SSL* ssl_;
  BIO* in_;
  BIO* out_;
  std::string outgoing_;
  std::size_t outgoing_done_ = 0;
  std::size_t handshake_bytes_ = 0;
  bool established_ = false, failed_ = false;
  bool drained_ = false;  // everything fed was read, up to a part of a record
};

}  // namespace rq::real
