// What a live feed writes, against a network that takes as little as it likes.
#include "core/broker/live_output.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rq::broker {
namespace {

constexpr io::StreamId kStream{7};

// Takes one write at a time and nothing else.
class Pipe final : public io::Net {
 public:
  void write_some(io::Op& op, io::StreamId, std::span<const ConstBuf> parts) override {
    RQ_CHECK(!op.in_flight);
    op.in_flight = true;
    offered.clear();
    for (const ConstBuf part : parts) offered.append(text_of(part));
  }
  // Returns what advance() says.
  bool take(LiveOutput& output, io::Op& op, std::size_t bytes) {
    op.in_flight = false;
    sent += offered.substr(0, bytes);
    return output.advance(bytes);
  }
  std::string offered, sent;

  void listen(io::Op&, std::string_view) override { RQ_CHECK(false); }
  void accept(io::Op&, io::StreamId) override { RQ_CHECK(false); }
  void connect(io::Op&, std::string_view, Instant) override { RQ_CHECK(false); }
  void read_some(io::ReadOp&, io::StreamId, ChunkPool&) override { RQ_CHECK(false); }
  void start_tls(io::Op&, io::StreamId, std::span<const ConstBuf>, Instant) override { RQ_CHECK(false); }
  void start_tls_client(io::Op&, io::StreamId, std::string_view, Instant) override { RQ_CHECK(false); }
  io::PeerInfo info(io::StreamId) const override { return {}; }
  std::string local_address(io::StreamId) const override { return {}; }
  void shutdown_write(io::StreamId) override { RQ_CHECK(false); }
  void close(io::StreamId) override { RQ_CHECK(false); }
};

TEST(LiveOutput, ControlsGoBeforeAMessageThatIsNotBegun) {
  LiveOutput output;
  Pipe pipe;
  io::Op op;
  output.message("[", Slice::copy_of(bytes_of(std::string_view("body]"))));
  output.controls() += "<ping>";
  EXPECT_TRUE(output.submit(pipe, kStream, op));
  EXPECT_EQ(pipe.offered, "<ping>");
  EXPECT_FALSE(output.in_message());
  EXPECT_FALSE(pipe.take(output, op, 6));
  EXPECT_TRUE(output.submit(pipe, kStream, op));
  EXPECT_EQ(pipe.offered, "[body]");
  EXPECT_TRUE(output.in_message());
  output.controls() += "<pong>";
  EXPECT_FALSE(pipe.take(output, op, 3));
  EXPECT_FALSE(output.submit(pipe, kStream, op)) << "the rest of a message is not its first write";
  EXPECT_EQ(pipe.offered, "dy]");
  EXPECT_TRUE(pipe.take(output, op, 3));
  EXPECT_FALSE(output.has_message());
  EXPECT_TRUE(output.submit(pipe, kStream, op));
  pipe.take(output, op, 6);
  EXPECT_EQ(pipe.sent, "<ping>[body]<pong>");
  EXPECT_TRUE(output.empty());
  EXPECT_FALSE(output.submit(pipe, kStream, op));
}

TEST(LiveOutput, AMessageThatIsNotBegunCanBeTakenBack) {
  LiveOutput output;
  Pipe pipe;
  io::Op op;
  output.message("[", Slice::copy_of(bytes_of(std::string_view("one]"))));
  output.drop_message();
  EXPECT_TRUE(output.empty());
  output.message("[", Slice::copy_of(bytes_of(std::string_view("two]"))));
  EXPECT_TRUE(output.submit(pipe, kStream, op));
  EXPECT_EQ(pipe.offered, "[two]");
  pipe.take(output, op, 5);
}

// I1: whatever the network takes at a time, everything leaves once, controls in order, nothing inside a message.
RC_GTEST_PROP(LiveOutputProperties, NothingIsLostOrPutInsideAMessage, ()) {
  LiveOutput output;
  Pipe pipe;
  io::Op op;
  std::string controls;
  int controls_said = 0, messages = 0, completed = 0;
  const auto write = [&](std::size_t bytes_max) {
    output.submit(pipe, kStream, op);
    if (!op.in_flight) return;
    completed += pipe.take(output, op, 1 + bytes_max % pipe.offered.size()) ? 1 : 0;
  };
  for (const int act : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 40))) {
    if (act < 8) {
      const std::string control = "<" + std::to_string(controls_said++) + ">";
      output.controls() += control;
      controls += control;
    } else if (act < 16 && !output.has_message()) {
      const std::string body = std::to_string(messages++) + std::string(static_cast<std::size_t>(act), '.') + "]";
      output.message("[", Slice::copy_of(bytes_of(body)));
    } else {
      write(static_cast<std::size_t>(act));
    }
  }
  while (!output.empty()) write(1);
  RC_ASSERT(completed == messages);
  std::string seen;
  int next = 0;
  for (std::size_t at = 0; at < pipe.sent.size();) {
    const bool message = pipe.sent[at] == '[';
    const std::size_t end = pipe.sent.find(message ? ']' : '>', at);
    RC_ASSERT(end != std::string::npos);
    const std::string piece = pipe.sent.substr(at, end + 1 - at);
    RC_ASSERT(piece.find_first_of(message ? "<>" : "[]") == std::string::npos);
    if (message) RC_ASSERT(piece.starts_with("[" + std::to_string(next++) + "."));
    if (!message) seen += piece;
    at = end + 1;
  }
  RC_ASSERT(next == messages);
  RC_ASSERT(seen == controls);
}

}  // namespace
}  // namespace rq::broker
