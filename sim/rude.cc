#include "sim/rude.h"

#include "core/base/bytes.h"

namespace rq::sim {
namespace {

constexpr std::uint64_t kStayMs = 1'500;
constexpr std::int64_t kBytePause = 40 * kMillisecond;
constexpr std::uint64_t kBombBytes = 200'000;

std::string int32(std::uint32_t value) {
  std::string out;
  put32(out, value);
  return out;
}

std::string pub_line() { return "PUB " + std::string(kRudeTopic) + "\n"; }

std::string identify_with(std::string_view layer) {
  return identify_command(R"({"feature_negotiation":true,")" + std::string(layer) + R"(":true})");
}

}  // namespace

std::string Rude::noise(std::uint64_t bytes_max) {
  std::string out(1 + random_.below(bytes_max), '\0');
  for (char& c : out) c = static_cast<char>(random_.below(256));
  return out;
}

void Rude::on_connected(Now now) {
  ++stage_.misdeeds;
  trickle_.clear();
  next_byte_ = Instant::never();
  leaves_at_ = now.mono + static_cast<std::int64_t>(random_.below(kStayMs) + 1) * kMillisecond;
  if (http_) return wrong_request();
  switch (random_.below(10)) {
    case 0:
      return half_a_command();
    case 1:
      return wrong_sizes();
    case 2:
      return wrong_magic();
    case 3:
      return never_reads();
    case 4:
      return failing_handshake();
    case 5:
      return bomb();
    case 6:
      return garbage_in_a_layer();
    case 7:
      return wrong_consumer();
    case 8:
      return link_->send("  V2" + noise(300));
    default:
      trickle_ = "  V2NOP\n" + pub_line() + int32(1'000);
      next_byte_ = now.mono;
  }
}

void Rude::wrong_request() {
  static constexpr std::string_view kPost = "POST /pub?topic=rude%23ephemeral HTTP/1.1\r\nHost: h\r\n";
  const std::string head(kPost);
  const std::uint64_t how = random_.below(7);
  if (how == 0) return link_->send(head.substr(0, random_.below(head.size())));
  if (how == 1) return link_->send(head + "Content-Length: 500\r\n\r\nhalf");
  if (how == 2) return link_->send(head + "Content-Length: 99999999999\r\n\r\n");
  if (how == 3) return link_->send(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc\r\nzz");
  if (how == 4) return link_->send(noise(300));
  if (how == 5) {
    trickle_ = head;
    next_byte_ = Instant{};
    return;
  }
  link_->reading = false;
  for (std::uint64_t i = 1 + random_.below(50); i > 0; --i) link_->send("GET /stats HTTP/1.1\r\nHost: h\r\n\r\n");
}

void Rude::half_a_command() {
  const std::string whole = "  V2" + pub_line() + int32(100) + std::string(100, 'h');
  link_->send(whole.substr(0, random_.below(whole.size())));
  if (random_.chance(300)) link_->shutdown_write();
}

void Rude::wrong_sizes() {
  static constexpr std::uint32_t kSizes[] = {0, 1, 3, 0x7fffffff, 0x80000000, 0xffffffff};
  const std::uint32_t size = kSizes[random_.below(std::size(kSizes))];
  const std::uint32_t count = kSizes[random_.below(std::size(kSizes))];
  const std::string rest = noise(50);
  link_->send("  V2");
  if (random_.chance(512)) return link_->send(pub_line() + int32(size) + rest);
  const std::uint32_t outer = random_.chance(512) ? 40 : size;
  link_->send("M" + pub_line() + int32(outer) + int32(count) + int32(1) + "x" + int32(size) + rest);
}

void Rude::wrong_magic() { link_->send(random_.chance(512) ? "GET /stats HTTP/1.1\r\n\r\n" : noise(40)); }

// Answers and messages back up until the Broker gives up on it.
void Rude::never_reads() {
  link_->reading = false;
  leaves_at_ = leaves_at_ + static_cast<std::int64_t>(random_.below(20)) * kSecond;
  link_->send("  V2SUB topic0 rude#ephemeral\nRDY 100\n");
  const std::uint64_t publishes = random_.below(300);
  for (std::uint64_t i = 0; i < publishes; ++i) link_->send(pub_command(kRudeTopic, "unread"));
}

void Rude::failing_handshake() {
  link_->send("  V2" + identify_with("tls_v1"));
  const std::uint64_t how = random_.below(4);
  if (how == 0) link_->send(noise(300));
  if (how == 1) link_->send("TLS hello");  // and nothing more
  if (how == 2) link_->shutdown_write();
  if (how == 3) link_->send("TLS hello rude\n" + noise(100));
}

// Few bytes that stand for many: one endless line, many commands, or a body that is refused.
void Rude::bomb() {
  const bool snappy = random_.chance(512);
  std::string expanded;
  switch (random_.below(3)) {
    case 0:
      expanded.assign(kBombBytes, 'A');
      break;
    case 1:
      while (expanded.size() < kBombBytes / 10) expanded += "NOP\n";
      break;
    default:
      expanded = pub_line() + int32(0x7fffffff) + std::string(kBombBytes, '\0');
  }
  std::string out;
  const ConstBuf piece = bytes_of(expanded);
  (snappy ? codec::snappy_encoder() : codec::deflate_encoder(9))->encode(std::span(&piece, 1), out);
  link_->send("  V2" + identify_with(snappy ? "snappy" : "deflate") + out);
}

void Rude::garbage_in_a_layer() {
  const std::string garbage = noise(400);
  link_->send("  V2" + identify_with(random_.chance(512) ? "snappy" : "deflate") + garbage);
}

void Rude::wrong_consumer() {
  static constexpr std::string_view kLines[] = {"RDY 99999999\n",
                                                "RDY -1\n",
                                                "FIN 0123456789abcdef\n",
                                                "FIN short\n",
                                                "REQ 0123456789abcdef x\n",
                                                "TOUCH 0123456789abcdef\n",
                                                "CLS\nCLS\n",
                                                "SUB topic0 other\n",
                                                "AUTH\n",
                                                "IDENTIFY\n",
                                                "\n",
                                                "SUB a$ b\n"};
  link_->send("  V2SUB topic0 rude#ephemeral\nRDY 1\n");
  const std::uint64_t lines = 1 + random_.below(5);
  for (std::uint64_t i = 0; i < lines; ++i) link_->send(kLines[random_.below(std::size(kLines))]);
}

void Rude::on_time(Now now) {
  if (!ready()) return;
  if (stage_.calm || now.mono >= leaves_at_) return hang_up(now, static_cast<std::int64_t>(random_.below(1'500)) * kMillisecond);
  if (now.mono < next_byte_ || trickle_.empty()) return;
  link_->send_piece(trickle_.substr(0, 1));
  trickle_.erase(0, 1);
  next_byte_ = trickle_.empty() ? Instant::never() : now.mono + kBytePause;
}

Instant Rude::next_time() const {
  if (!ready()) return Instant::never();
  return std::min(leaves_at_, next_byte_);
}

}  // namespace rq::sim
