// A scripted reader of a live feed over the simulated network: the upgrade, then frames.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/broker/live_feeds.h"
#include "tests/broker/http_test_support.h"
#include "tests/ws/client_frames.h"

namespace rq::sim {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct LiveFrame {
  int opcode = -1;  // -1: none came
  std::string payload;
  std::uint16_t close_code() const { return payload.size() < 2 ? 0 : load16(bytes_of(payload).data()); }
};

// "text {...}", "binary <24 + n>", "close 1008 E_X", "closed" when the connection ended, "nothing".
class Feed {
 public:
  Feed(BrokerHarness& h, Client& client) : h_(h), client_(client) {}

  static Headers offer() {
    return {{"Connection", "keep-alive, Upgrade"},
            {"Upgrade", "websocket"},
            {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
            {"Sec-WebSocket-Version", "13"},
            {"Sec-WebSocket-Protocol", "other, rustqueue.live.v1"}};
  }
  static Headers with(Headers more) {
    Headers headers = offer();
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
  }

  // The status of the answer; the reply itself is in `reply`.
  int open(std::string_view topic, const Headers& headers = offer()) {
    EXPECT_TRUE(client_.connect(h_.http_address(), ""));
    client_.send(http_request("GET", std::string("/v1/ws/topics/") + std::string(topic), "", headers));
    h_.run_until([&] { return client_.raw().find("\r\n\r\n") != std::string::npos || client_.closed(); });
    at_ = client_.raw().find("\r\n\r\n");
    if (client_.raw().starts_with("HTTP/1.1 101 ")) {
      at_ += 4;
      return 101;
    }
    h_.run_until([&] { return (reply = parse_reply(client_.raw(), client_.closed()).value_or(HttpReply{})).status != 0; });
    return reply.status;
  }
  HttpReply reply;

  // The next frame; pings are answered and counted, pongs skipped, unless they are kept.
  LiveFrame next(std::int64_t limit_ms = 5'000) {
    LiveFrame frame;
    h_.run_until([&] { return take(frame) || client_.closed(); }, limit_ms);
    if (frame.opcode < 0) take(frame);
    return frame;
  }
  // What came next, in words.
  std::string heard(std::int64_t limit_ms = 5'000) {
    const LiveFrame frame = next(limit_ms);
    if (frame.opcode == 1) return frame.payload;
    if (frame.opcode == 2) return "message " + frame.payload.substr(24);
    if (frame.opcode == 8)
      return "close " + std::to_string(frame.close_code()) + " " +
             frame.payload.substr(std::min<std::size_t>(2, frame.payload.size()));
    if (frame.opcode == 10) return "pong " + frame.payload;
    return client_.closed() ? "closed" : "nothing";
  }
  // "E_X 1008" of an error control followed by the close frame with that reason, or what came instead.
  std::string ended(std::int64_t limit_ms = 5'000) {
    const std::string text = heard(limit_ms);
    if (!text.starts_with(R"({"type":"error","code":")")) return text;
    const std::string code = text.substr(24, text.find('"', 24) - 24);
    const LiveFrame close = next();
    if (close.opcode != 8 || close.payload.substr(2) != code) return code + " without its close frame";
    return code + " " + std::to_string(close.close_code());
  }
  void text(std::string_view payload) { client_.send(ws::client_frame(1, payload)); }
  void send(std::uint8_t opcode, std::string_view payload) { client_.send(ws::client_frame(opcode, payload)); }
  void close() { client_.close(); }
  bool closed() const { return client_.closed(); }
  Client& client() { return client_; }
  bool answer_pings = true;
  int pings = 0;

 private:
  bool take(LiveFrame& frame) {
    for (;;) {
      const std::string& raw = client_.raw();
      if (raw.size() < at_ + 2) return false;
      const std::string_view rest = std::string_view(raw).substr(at_);
      const auto* bytes = reinterpret_cast<const std::byte*>(rest.data());
      EXPECT_EQ(static_cast<std::uint8_t>(rest[0]) & 0x70, 0);
      std::uint64_t length = static_cast<std::uint8_t>(rest[1]);
      std::size_t header = 2;
      EXPECT_LT(length, 128u) << "masked";
      if (length == 126) header = 4;
      if (length == 127) header = 10;
      if (rest.size() < header) return false;
      if (length == 126) length = load16(bytes + 2);
      if (length == 127) length = load64(bytes + 2);
      if (rest.size() < header + length) return false;
      LiveFrame got{rest[0] & 0x0f, std::string(rest.substr(header, length))};
      at_ += header + length;
      if (got.opcode == 9) {
        ++pings;
        if (answer_pings) send(10, got.payload);
        continue;
      }
      frame = std::move(got);
      return true;
    }
  }
  BrokerHarness& h_;
  Client& client_;
  std::size_t at_ = 0;
};

// A Broker with the feed enabled and a TTL_DISCARD Topic "t".
class LiveTest : public testing::Test {
 protected:
  using Tweak = BrokerHarness::Tweak;
  void start(const Tweak& tweak = {}) {
    h.config().websocket.enabled = true;
    if (tweak) tweak(h.config());
    ASSERT_TRUE(h.start());
    configure("t", {true, 3'600});
  }
  void configure(const std::string& topic, const queue::DeliveryPolicy& policy) {
    h.broker().engine().configure(topic, policy, true, queue::WaiterId::none, h.process().turn().now());
    h.process().poke();
    ASSERT_TRUE(h.run_until([&] { return h.broker().engine().policy_of(topic) == policy; }));
  }
  Feed& feed() { return *feeds.emplace_back(std::make_unique<Feed>(h, h.client())); }
  Feed& ready(const std::string& topic = "t", const Headers& headers = Feed::offer()) {
    Feed& fresh = feed();
    EXPECT_EQ(fresh.open(topic, headers), 101);
    EXPECT_TRUE(fresh.heard().starts_with(R"({"type":"ready","topic":")" + topic)) << topic;
    return fresh;
  }
  // Code of the refusal: "409 E_WS_TTL_REQUIRED".
  std::string refused(const std::string& topic, const Headers& headers = Feed::offer()) {
    Feed& fresh = feed();
    const int status = fresh.open(topic, headers);
    return status == 101 ? "101" : result_of(fresh.reply);
  }
  const broker::BrokerCounters& counters() { return h.broker().counters(); }
  bool no_channels(const std::string& topic = "t") {
    return h.http("GET", "/v1/stats?topic=" + topic).body.find("\"channels\":[]") != std::string::npos;
  }
  BrokerHarness h;
  std::vector<std::unique_ptr<Feed>> feeds;
};

}  // namespace rq::sim
