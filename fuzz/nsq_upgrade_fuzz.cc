// A whole session through an upgrade: IDENTIFY grants TLS, Snappy or Deflate or two of them, then any bytes come, inside the
// layer as commands, or past it as what a broken client sends. The first three bytes choose the seed, the layers and how the
// stream is cut. The upper half of the layers says what comes with them: AUTH before IDENTIFY, AUTH as the first command inside
// the layers, or what is to go into them in one piece with IDENTIFY, before they are there. With AUTH the fourth byte says what
// the auth server does, the fifth how many of the bytes behind it are its document.
//
// Nothing that was sent early is lost, AUTH holds across the layers, and the auth server hears of TLS and of the certificate's
// name as soon as they are there, and not before.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/codec/codec.h"
#include "fuzz/auth_answers.h"
#include "fuzz/session_check.h"

namespace {

using namespace rq;

constexpr std::uint8_t kTls = 1, kSnappy = 2, kDeflate = 4, kPastTheLayer = 8, kAuth = 16, kAuthBefore = 32, kAuthInside = 64,
                       kEarly = 128;
constexpr std::string_view kName = "fuzz";  // of the certificate
constexpr std::int64_t kAnswerMs = 30'000;  // an auth server that never answers is given up before

const std::string kAuthCommand("AUTH\n\0\0\0\1s", 10), kPubCommand("PUB t\n\0\0\0\1x", 11);

class Upgrade {
 public:
  // `kind` of the auth server's answers, if there is one.
  Upgrade(sim::BrokerHarness& h, sim::AuthServer* server, std::uint8_t kind, std::uint8_t layers, std::uint8_t cut)
      : h_(h),
        server_(server),
        grants_publishing_(fuzz::grants_publishing(kind)),
        grant_expires_(fuzz::grant_expires(kind)),
        layers_(layers),
        cut_(cut),
        kind_(has(kSnappy) ? sim::Client::Compression::snappy : sim::Client::Compression::deflate),
        encoder_(has(kSnappy) ? codec::snappy_encoder() : codec::deflate_encoder(6)) {}

  void run(std::string_view stream) {
    RQ_CHECK(h_.start());
    client_ = &h_.connect();
    if (!has(kAuthBefore) || auth_before()) session(stream);
    if (server_ != nullptr) check_questions();
    fuzz::check_end(h_, *client_, has(kAuth), authed_);
  }

 private:
  bool has(std::uint8_t flag) const {
    if (flag == kDeflate && (layers_ & kSnappy) != 0) return false;
    if ((flag == kAuthBefore || flag == kAuthInside) && (layers_ & kAuth) == 0) return false;
    if (flag == kAuthInside && (layers_ & kAuthBefore) != 0) return false;
    return (layers_ & flag) != 0;
  }
  bool compressed() const { return has(kSnappy) || has(kDeflate); }

  bool auth_before() {
    put(kAuthCommand);
    take_auth_answer();
    asked_in_clear_ = server_->heads.size();
    h_.run_for(1'500);  // a short grant has expired: the next command that needs it asks again
    return authed_;
  }

  void session(std::string_view stream) {
    const bool may_publish = !has(kAuth) || (authed_ && grants_publishing_);
    const std::string_view first = has(kAuthInside) ? kAuthCommand : may_publish ? kPubCommand : std::string_view();
    // A command that fails takes the answers of publishes before it along, and so do bytes that are not decodable.
    const bool apart = has(kPastTheLayer) || !has(kAuthInside);
    std::string inside = encoded(first);
    if (!apart) inside += encoded(stream);
    begin_layers(has(kEarly) ? inside : "");
    if (!has(kEarly)) put(inside);
    if (has(kAuthInside)) {
      take_auth_answer();
      if (!authed_) return;
    } else if (!first.empty()) {
      RQ_CHECK(client_->answer(kAnswerMs).payload == "OK");
      RQ_CHECK(!has(kAuthBefore) || !grant_expires_ || server_->heads.size() > asked_in_clear_);
    }
    if (apart) put(has(kPastTheLayer) ? std::string(stream) : encoded(stream));
    h_.run_for(200);
  }

  // IDENTIFY and what follows from it. `early` goes out with it.
  void begin_layers(std::string_view early) {
    std::string wish = "{\"feature_negotiation\":true";
    if (has(kTls)) wish += ",\"tls_v1\":true";
    if (has(kSnappy)) wish += ",\"snappy\":true";
    if (has(kDeflate)) wish += ",\"deflate\":true";
    std::string bytes = sim::identify_command(wish + "}");
    if (has(kEarly)) bytes.append(has(kTls) ? sim::Client::tls_hello(kName) : "").append(early);
    put(bytes);
    RQ_CHECK(client_->answer(kAnswerMs).payload.starts_with("{\"max_rdy_count\":"));
    if (has(kTls)) {
      has(kEarly) ? client_->await_tls() : client_->start_tls(kName);
      RQ_CHECK(client_->answer(kAnswerMs).payload == "OK");
    }
    if (compressed()) {
      client_->compress(kind_);
      RQ_CHECK(client_->answer(kAnswerMs).payload == "OK");
    }
  }

  // Granted, or refused and closed.
  void take_auth_answer() {
    const sim::Frame answer = client_->answer(kAnswerMs);
    authed_ = fuzz::granted(answer);
    if (authed_) return;
    RQ_CHECK(answer.is_error("E_UNAUTHORIZED AUTH ") || answer.is_error("E_AUTH_FAILED AUTH "));
    RQ_CHECK(client_->wait_closed());
  }

  // What was asked after the handshake names TLS and the certificate.
  void check_questions() const {
    for (std::size_t i = 0; i < server_->heads.size(); ++i) {
      const std::string_view head = server_->heads[i];
      const bool tls = has(kTls) && i >= asked_in_clear_;
      RQ_CHECK((head.find("tls=true") != std::string_view::npos) == tls);
      RQ_CHECK((head.find("common_name=fuzz") != std::string_view::npos) == tls);
    }
  }

  std::string encoded(std::string_view bytes) {
    if (!compressed() || bytes.empty()) return std::string(bytes);
    std::string out;
    const ConstBuf piece = bytes_of(bytes);
    encoder_->encode(std::span(&piece, 1), out);
    return out;
  }
  void put(std::string_view bytes) {
    if (bytes.empty()) return;
    cut_ == 0 ? client_->send_plain(bytes) : client_->send_split(bytes, 1 + cut_ % 64);
  }

  sim::BrokerHarness& h_;
  sim::AuthServer* const server_;
  const bool grants_publishing_, grant_expires_;
  const std::uint8_t layers_, cut_;
  const sim::Client::Compression kind_;
  // Of everything sent here. The client's own makes no more than the answers to heartbeats, later.
  const std::unique_ptr<codec::Encoder> encoder_;
  sim::Client* client_ = nullptr;
  bool authed_ = false;
  std::size_t asked_in_clear_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4 || size > 8'192) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool auth = (data[1] & kAuth) != 0;
  if (auth && size < 6) return 0;
  sim::BrokerHarness h(data[0], [auth](broker::Config& config) {
    config.limits.max_rdy_count = 10;
    config.security.tls.present = true;
    if (auth) config.security.auth_http_addresses = {fuzz::kAuthAddress};
  });
  if (!auth) {
    Upgrade(h, nullptr, 0, data[1], data[2]).run(input.substr(3));
    return 0;
  }
  const std::size_t length = std::min<std::size_t>(data[4], size - 5);
  sim::AuthServer server(h.world(), h.world().make_disk("auth"), "auth", fuzz::kAuthAddress);
  server.answer = [kind = data[3], document = std::string(input.substr(5, length))](const std::string&) {
    return fuzz::auth_answer(kind, document);
  };
  server.start();
  Upgrade(h, &server, data[3], data[1], data[2]).run(input.substr(5 + length));
  return 0;
}
