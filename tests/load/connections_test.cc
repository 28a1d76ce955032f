// Producer and consumer of rustqueue-bench, driven by hand: bytes in, bytes out.
#include <gtest/gtest.h>

#include "bench/load/consumer.h"
#include "bench/load/producer.h"
#include "core/nsq/frames.h"

namespace rq::load {
namespace {

std::string response(std::string_view text) {
  std::string out;
  nsq::put_frame(out, nsq::FrameType::response, text);
  return out;
}
std::string error(std::string_view text) {
  std::string out;
  nsq::put_frame(out, nsq::FrameType::error, text);
  return out;
}
std::string message(std::uint64_t id, std::string_view body) {
  std::string out;
  nsq::put_message_header(out, 1, 1, id, static_cast<std::uint32_t>(body.size()));
  return out.append(body);
}

struct LoadConsumer : testing::Test {
  std::string body(std::uint64_t number) const {
    std::string text = model.model();
    model.write_number(reinterpret_cast<std::byte*>(text.data()), number);
    return text;
  }
  // What it answers to these bytes.
  std::string feed(std::string_view bytes) {
    std::string out;
    consumer.on_bytes(bytes_of(bytes), out);
    return out;
  }
  Body model{32, 7};
  Deliveries deliveries;
  Consumer consumer{model, deliveries};
};

TEST_F(LoadConsumer, SubscribesAndFinishesWhatArrives) {
  std::string out;
  consumer.subscribe("t", "c", out);
  EXPECT_EQ(out, "SUB t c\n");
  EXPECT_FALSE(consumer.subscribed());
  EXPECT_EQ(feed(response("OK")), "RDY 2500\n");
  EXPECT_TRUE(consumer.subscribed());
  EXPECT_EQ(feed(response("_heartbeat_")), "NOP\n");
  EXPECT_EQ(feed(message(0xab, body(0)) + message(0xac, body(1))), "FIN 00000000000000ab\nFIN 00000000000000ac\n");
  EXPECT_EQ(deliveries.unique.count(), 2u);
  EXPECT_EQ(deliveries.total, 2u);
  EXPECT_EQ(consumer.error(), "");
}

TEST_F(LoadConsumer, CreditIsRefilledAt625) {
  feed(response("OK"));
  std::uint64_t id = 0;
  for (; id < Consumer::kReady - Consumer::kRefillAt - 1; ++id)
    ASSERT_EQ(feed(message(id, body(id))).find("RDY"), std::string::npos);
  EXPECT_NE(feed(message(id, body(id))).find("RDY 2500\n"), std::string::npos);
  ++id;
  EXPECT_EQ(feed(message(id, body(id))).find("RDY"), std::string::npos);
}

TEST_F(LoadConsumer, ASecondDeliveryIsADuplicateAndItsFailedFinNoError) {
  feed(response("OK"));
  feed(message(1, body(0)));
  EXPECT_EQ(feed(message(1, body(0))), "FIN 0000000000000001\n");
  feed(error("E_FIN_FAILED FIN 0000000000000001 failed"));
  EXPECT_EQ(deliveries.unique.count(), 1u);
  EXPECT_EQ(deliveries.total, 2u);
  EXPECT_EQ(consumer.error(), "");
}

TEST_F(LoadConsumer, MessagesOfAnotherRunAreFinishedAndNotCounted) {
  feed(response("OK"));
  EXPECT_EQ(feed(message(1, Body(32, 8).model())), "FIN 0000000000000001\n");
  EXPECT_EQ(deliveries.total, 0u);
}

TEST_F(LoadConsumer, ABodyThatWasNotPublishedIsAnError) {
  feed(response("OK"));
  std::string bad = body(0);
  bad[20] ^= 1;
  feed(message(1, bad));
  EXPECT_NE(consumer.error(), "");
}

TEST_F(LoadConsumer, ErrorsAndUnexpectedFramesAreErrors) {
  for (const std::string& bytes :
       {error("E_BAD_TOPIC SUB"), response("OK") + response("OK"), response("CLOSE_WAIT"), message(1, body(0))}) {
    Consumer fresh(model, deliveries);
    std::string out;
    fresh.on_bytes(bytes_of(bytes), out);
    EXPECT_NE(fresh.error(), "");
  }
}

TEST_F(LoadConsumer, L_20_AStopWithinAFrameFinishesItAndEndsAfterCloseWait) {
  feed(response("OK"));
  const std::string frame = message(5, body(0));
  EXPECT_EQ(feed(frame.substr(0, 20)), "");
  std::string out;
  consumer.stop(out);
  EXPECT_EQ(out, "CLS\n");
  EXPECT_FALSE(consumer.close_wait());
  EXPECT_EQ(feed(frame.substr(20)), "FIN 0000000000000005\n");
  EXPECT_FALSE(consumer.close_wait());
  EXPECT_EQ(feed(response("CLOSE_WAIT")), "");
  EXPECT_TRUE(consumer.close_wait());
  EXPECT_EQ(consumer.error(), "");
  EXPECT_EQ(deliveries.unique.count(), 1u);
}

TEST(LoadProducer, OneCommandIsOnItsWayAndItsOkCarriesItsStart) {
  const Body model(8, 0);
  Producer producer("t", model, 4);
  EXPECT_FALSE(producer.waiting());
  EXPECT_EQ(text_of(producer.publish(0, 4, Instant{123})).substr(0, 7), "MPUB t\n");
  EXPECT_TRUE(producer.waiting());
  std::string out;
  EXPECT_EQ(producer.on_bytes(bytes_of(response("_heartbeat_")), out).messages, 0u);
  EXPECT_EQ(out, "NOP\n");
  const Producer::Answered answered = producer.on_bytes(bytes_of(response("OK")), out);
  EXPECT_EQ(answered.messages, 4u);
  EXPECT_EQ(answered.since, Instant{123});
  EXPECT_FALSE(producer.waiting());
  EXPECT_EQ(producer.error(), "");
}

TEST(LoadProducer, AnErrorOrAnAnswerToNothingIsAnError) {
  const Body model(8, 0);
  std::string out;
  Producer refused("t", model, 1);
  refused.publish(0, 1, Instant{});
  refused.on_bytes(bytes_of(error("E_THROTTLED disk full")), out);
  EXPECT_EQ(refused.error(), "was answered E_THROTTLED disk full");
  Producer unasked("t", model, 1);
  unasked.on_bytes(bytes_of(response("OK")), out);
  EXPECT_NE(unasked.error(), "");
}

}  // namespace
}  // namespace rq::load
