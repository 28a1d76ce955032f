#include "io/real/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "core/base/check.h"

namespace rq::real {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;

std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "not usable" : reason;
}

tl::unexpected<std::string> failure(const std::string& file) { return tl::unexpected(file + ": " + openssl_error()); }

// A key with a passphrase is an error, not a question on the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }
int any_certificate(int, X509_STORE_CTX*) { return 1; }

bool use_chain(SSL_CTX& context, BIO& pem) {
  X509* own = PEM_read_bio_X509(&pem, nullptr, no_passphrase, nullptr);
  if (own == nullptr) return false;
  const bool used = SSL_CTX_use_certificate(&context, own) == 1;
  X509_free(own);
  if (!used) return false;
  while (X509* issuer = PEM_read_bio_X509(&pem, nullptr, no_passphrase, nullptr)) {
    const bool added = SSL_CTX_add0_chain_cert(&context, issuer) == 1;
    if (!added) X509_free(issuer);
    if (!added) return false;
  }
  ERR_clear_error();  // the end of the file
  return true;
}

bool use_key(SSL_CTX& context, BIO& pem) {
  EVP_PKEY* key = PEM_read_bio_PrivateKey(&pem, nullptr, no_passphrase, nullptr);
  if (key == nullptr) return false;
  const bool used = SSL_CTX_use_PrivateKey(&context, key) == 1 && SSL_CTX_check_private_key(&context) == 1;
  EVP_PKEY_free(key);
  return used;
}

bool ask_for_certificates(SSL_CTX& context, const TlsOptions& options) {
  switch (options.client_certificates) {
    case ClientCertificates::none:
      return true;
    case ClientCertificates::request:
      SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, any_certificate);
      return true;
    case ClientCertificates::require:
      SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, any_certificate);
      return true;
    case ClientCertificates::require_verify:
      break;
  }
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(options.client_ca_file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(&context, options.client_ca_file.c_str()) != 1) return false;
  SSL_CTX_set_client_CA_list(&context, names);
  return true;
}

TlsContext common_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method));
  if (context == nullptr) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  return context;
}

}  // namespace

tl::expected<TlsContext, std::string> tls_server_context(const TlsOptions& options) {
  ERR_clear_error();
  TlsContext context = common_context(TLS_server_method());
  if (context == nullptr) return tl::unexpected("OpenSSL: " + openssl_error());
  if (options.tls1_3_only) SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  const BioPtr certificate(BIO_new_file(options.certificate_file.c_str(), "r"));
  if (certificate == nullptr || !use_chain(*context, *certificate)) return failure(options.certificate_file);
  const BioPtr key(BIO_new_file(options.private_key_file.c_str(), "r"));
  if (key == nullptr || !use_key(*context, *key)) return failure(options.private_key_file);
  if (!ask_for_certificates(*context, options)) return failure(options.client_ca_file);
  return context;
}

tl::expected<TlsContext, std::string> tls_client_context(const std::string& ca_file, bool tls1_3_only) {
  ERR_clear_error();
  TlsContext context = common_context(TLS_client_method());
  if (context == nullptr || SSL_CTX_set_default_verify_paths(context.get()) != 1)
    return tl::unexpected("OpenSSL: " + openssl_error());
  if (!ca_file.empty() && SSL_CTX_load_verify_file(context.get(), ca_file.c_str()) != 1) return failure(ca_file);
  if (tls1_3_only) SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

TlsMachine::TlsMachine(SSL_CTX& context, const std::string* server_name)
    : ssl_(SSL_new(&context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  RQ_CHECK(ssl_ != nullptr && in_ != nullptr && out_ != nullptr);
  BIO_set_mem_eof_return(in_, -1);
  SSL_set_bio(ssl_, in_, out_);  // owned by ssl_ from here on
  if (server_name == nullptr) {
    SSL_set_accept_state(ssl_);
    return;
  }
  SSL_set_connect_state(ssl_);
  // An address is proved by its own kind of name and never sent.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server_name->c_str()) == 1) return;
  ERR_clear_error();
  failed_ = SSL_set1_host(ssl_, server_name->c_str()) != 1 || SSL_set_tlsext_host_name(ssl_, server_name->c_str()) != 1;
}

TlsMachine::~TlsMachine() { SSL_free(ssl_); }

void TlsMachine::feed(ConstBuf received) {
  if (!established_) {
    handshake_bytes_ += received.size();
    failed_ = failed_ || handshake_bytes_ > kHandshakeBytesMax;
  }
  if (failed_ || received.empty()) return;
  drained_ = false;
  RQ_CHECK(BIO_write(in_, received.data(), static_cast<int>(received.size())) == static_cast<int>(received.size()));
}

TlsMachine::Result TlsMachine::handshake() {
  if (failed_) return Result::failed;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  const int error = SSL_get_error(ssl_, result);
  collect();
  if (result == 1) {
    established_ = true;
    return Result::done;
  }
  if (error == SSL_ERROR_WANT_READ) return Result::need_input;
  ERR_clear_error();
  failed_ = true;
  return Result::failed;
}

TlsMachine::Result TlsMachine::read(MutBuf out, std::size_t& got) {
  got = 0;
  if (failed_) return Result::failed;
  if (drained_) return Result::need_input;
  int result = 1, error = SSL_ERROR_NONE;
  // Record after record: clients send each small command in one of its own.
  while (result == 1 && got < out.size() && !drained_) {
    std::size_t part = 0;
    ERR_clear_error();
    result = SSL_read_ex(ssl_, out.data() + got, out.size() - got, &part);
    error = SSL_get_error(ssl_, result);
    got += part;
    drained_ = result == 1 ? SSL_pending(ssl_) == 0 && BIO_pending(in_) == 0 : error == SSL_ERROR_WANT_READ;
  }
  collect();
  if (got > 0) return Result::done;  // what ended it comes again
  if (error == SSL_ERROR_WANT_READ) return Result::need_input;
  if (error == SSL_ERROR_ZERO_RETURN) return Result::ended;
  ERR_clear_error();
  failed_ = true;
  return Result::failed;
}

bool TlsMachine::write(ConstBuf plain) {
  if (failed_) return false;
  ERR_clear_error();
  std::size_t written = 0;
  const int result = SSL_write_ex(ssl_, plain.data(), plain.size(), &written);
  collect();
  failed_ = result != 1 || written != plain.size();  // memory takes everything
  if (failed_) ERR_clear_error();
  return !failed_;
}

void TlsMachine::end() {
  if (failed_ || !established_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
  collect();
}

void TlsMachine::collect() {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(out_, &data);
  if (bytes <= 0) return;
  outgoing_.append(data, static_cast<std::size_t>(bytes));
  BIO_reset(out_);
}

ConstBuf TlsMachine::pending() const { return bytes_of(outgoing_).subspan(outgoing_done_); }

void TlsMachine::sent(std::size_t bytes) {
  outgoing_done_ += bytes;
  if (outgoing_done_ < outgoing_.size()) return;
  outgoing_ = std::string();
  outgoing_done_ = 0;
}

std::string TlsMachine::version() const { return SSL_version(ssl_) == TLS1_3_VERSION ? "TLS1.3" : "TLS1.2"; }

std::string TlsMachine::cipher() const {
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl_);
  if (cipher == nullptr) return {};
  if (SSL_version(ssl_) == TLS1_3_VERSION) return "Unknown " + std::to_string(SSL_CIPHER_get_protocol_id(cipher));
  const char* name = SSL_CIPHER_standard_name(cipher);
  return name == nullptr ? "" : name;
}

std::string TlsMachine::common_name() const {
  X509* peer = SSL_get0_peer_certificate(ssl_);
  if (peer == nullptr) return {};
  X509_NAME* subject = X509_get_subject_name(peer);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  unsigned char* text = nullptr;
  const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (length < 0) return {};
  std::string name(reinterpret_cast<char*>(text), static_cast<std::size_t>(length));
  OPENSSL_free(text);
  return name;
}

}  // namespace rq::real
