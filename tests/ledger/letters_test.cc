// Rule L12 of the ledger: dead letters.
#include <gtest/gtest.h>

#include "ledger/ledger.h"

namespace rq::ledger {
namespace {

struct Letters : ::testing::Test {
  Letters() : ledger(settings()) {
    source = ledger.subscribed("t", "c", 60 * kSecond, at(0));
    letters = ledger.subscribed("t.c.DLQ", "letters", 60 * kSecond, at(0));
    for (const ConsumerRef consumer : {source, letters}) ledger.ready(consumer, 10);
    const std::string body = "body";
    publish = ledger.publish_sent("t", {&body, 1}, 0, at(1));
    ledger.publish_answered(publish, Answer::ok, at(2));
  }
  static Settings settings() {
    Settings s;
    s.dead_letter_suffix = ".DLQ";
    s.attempts_max = 2;
    s.wall_is_steady = false;
    return s;
  }
  static Now at(std::int64_t seconds) { return {Instant{seconds * kSecond + 1}, WallTime{seconds * kSecond}}; }
  void deliver(ConsumerRef consumer, const char* id, std::uint16_t attempts, std::int64_t seconds) {
    ledger.delivered(consumer, id, 0, attempts, "body", at(seconds));
  }
  std::string rule() const { return ledger.findings().empty() ? "" : ledger.findings()[0].rule; }

  Ledger ledger;
  ConsumerRef source = 0, letters = 0;
  PublishRef publish = 0;
};

constexpr const char* kId = "0001000000000001";
constexpr const char* kLetter = "0001000000000002";

TEST_F(Letters, ALetterIsTheFinishOfItsSource) {
  deliver(source, kId, 1, 3);
  EXPECT_EQ(ledger.missing(), 1u);
  deliver(letters, kLetter, 1, 4);
  EXPECT_EQ(ledger.missing(), 0u);
  ledger.audit(at(5));
  EXPECT_EQ(rule(), "");
  EXPECT_EQ(ledger.totals().letters, 1u);
}

TEST_F(Letters, ACrashMayLeaveASecondLetterUnderAnotherId) {
  deliver(letters, kLetter, 1, 4);
  deliver(letters, "0001000000000003", 1, 5);
  EXPECT_EQ(rule(), "");
  deliver(letters, "0001000000000003", 2, 100);
  EXPECT_EQ(rule(), "");
}

TEST_F(Letters, TheLastAttemptIsNeverSeen) {
  deliver(source, kId, 2, 3);
  EXPECT_EQ(rule(), "L12");
}

TEST_F(Letters, AMovedMessageIsNotDeliveredToALaterConnection) {
  deliver(source, kId, 1, 3);
  deliver(letters, kLetter, 1, 4);
  ledger.closed(source, at(5));
  source = ledger.subscribed("t", "c", 60 * kSecond, at(6));
  deliver(source, kId, 1, 7);
  EXPECT_EQ(rule(), "L12");
}

TEST_F(Letters, ALetterOfAnotherTopicIsAFinding) {
  const std::string other = "other";
  ledger.publish_answered(ledger.publish_sent("u", {&other, 1}, 0, at(3)), Answer::ok, at(3));
  ledger.delivered(letters, kLetter, 0, 1, "other", at(4));
  EXPECT_EQ(rule(), "L1");
}

TEST_F(Letters, AnIdOfAMessageIsNotThatOfALetter) {
  deliver(source, kId, 1, 3);
  deliver(letters, kId, 1, 4);
  EXPECT_EQ(rule(), "L2");
}

}  // namespace
}  // namespace rq::ledger
