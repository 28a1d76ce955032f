// Every rule of the ledger bites on a history that breaks it, and stays silent on one that only looks odd.
#include "ledger/ledger.h"

#include <gtest/gtest.h>

namespace rq::ledger {
namespace {

constexpr std::int64_t kLease = 60 * kSecond;

// A history told in milliseconds.
class Story : public ::testing::Test {
 protected:
  Now at(std::int64_t ms) const { return {Instant{ms * kMillisecond}, WallTime{(1'000'000 + ms) * kMillisecond}}; }
  static std::string id(int n) { return "000100000000000" + std::to_string(n); }
  std::int64_t stamp(std::int64_t ms) const { return at(ms).wall.ns; }

  PublishRef published(std::int64_t ms, const std::string& body, Answer answer = Answer::ok) {
    const std::vector<std::string> bodies{body};
    const PublishRef ref = ledger.publish_sent("t", bodies, 0, at(ms));
    if (answer != Answer::waiting) ledger.publish_answered(ref, answer, at(ms + 2));
    return ref;
  }
  ConsumerRef consumer(std::int64_t ms, std::uint32_t rdy = 1, const std::string& channel = "c") {
    ledger.subscribe_sent("t", channel, at(ms));
    const ConsumerRef ref = ledger.subscribed("t", channel, kLease, at(ms + 1));
    ledger.ready(ref, rdy);
    return ref;
  }
  void delivered(ConsumerRef to, std::int64_t ms, int number, const std::string& body, std::uint16_t attempts = 1,
                 std::int64_t sent_ms = 10) {
    ledger.delivered(to, id(number), stamp(sent_ms + 1), attempts, body, at(ms));
  }
  // The rules that were broken, in order, as one string.
  std::string broken() const {
    std::string out;
    for (const Finding& finding : ledger.findings()) out += (out.empty() ? "" : " ") + finding.rule;
    return out;
  }
  Ledger ledger;
};

TEST_F(Story, APublishedFinishedMessageIsInOrder) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(30));
  ledger.audit(at(1'000));
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(ledger.totals().audited, 1u);
}

TEST_F(Story, L1_ABodyThatNobodyPublishedIsFound) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "b");
  EXPECT_EQ(broken(), "L1");
}

TEST_F(Story, L1_ARefusedPublishThatIsDeliveredIsFound) {
  const ConsumerRef c = consumer(1);
  published(10, "a", Answer::refused);
  delivered(c, 20, 1, "a");
  EXPECT_EQ(broken(), "L1");
}

TEST_F(Story, L1_AnAmbiguousPublishMayBeDeliveredOrNot) {
  const ConsumerRef c = consumer(1, 2);
  published(10, "a", Answer::ambiguous);
  published(10, "b", Answer::ambiguous);
  delivered(c, 20, 1, "a");
  ledger.audit(at(1'000));
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L4_InARelaxedModeAPowerLossExcusesTheUnsyncedTailAndNothingElse) {
  ledger = Ledger({.relaxed_ns = 100 * kMillisecond});
  consumer(1);
  published(10, "synced");
  published(950, "killed over");
  ledger.broker_stopped(Stop::crash, at(1'000));
  published(2'000, "lost");
  published(2'050, "answer under way", Answer::waiting);
  ledger.broker_stopped(Stop::power_loss, at(2'060));
  ledger.publish_answered(3, Answer::ok, at(2'070));
  published(3'000, "after");
  ledger.audit(at(9'000));
  EXPECT_EQ(broken(), "L4 L4 L4");
  EXPECT_EQ(ledger.totals().acknowledged, 3u);
  EXPECT_EQ(ledger.totals().ambiguous, 2u);
}

TEST_F(Story, L2_OneIdForTwoMessagesIsFoundAcrossACrash) {
  const ConsumerRef c = consumer(1);
  published(10, "a", Answer::ambiguous);
  delivered(c, 20, 1, "a");
  ledger.broker_stopped(Stop::crash, at(30));
  const ConsumerRef d = consumer(40);
  published(50, "b");
  delivered(d, 60, 1, "b", 1, 50);
  EXPECT_EQ(broken(), "L2");
}

TEST_F(Story, L2_AnotherTimestampInAnotherChannelIsFound) {
  const ConsumerRef c = consumer(1);
  const ConsumerRef d = consumer(3, 1, "d");
  published(10, "a");
  ledger.delivered(c, id(1), stamp(11), 1, "a", at(20));
  ledger.delivered(d, id(1), stamp(12), 1, "a", at(20));
  EXPECT_EQ(broken(), "L2");
}

TEST_F(Story, L3_AFinWhoseCreditWasSeenIsFinal) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  published(10, "b");
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(30));
  delivered(c, 40, 2, "b");  // RDY 1: the FIN was durable before
  ledger.broker_stopped(Stop::crash, at(50));
  const ConsumerRef d = consumer(60);
  delivered(d, 70, 1, "a", 2);
  EXPECT_EQ(broken(), "L3");
}

TEST_F(Story, L3_AFinWithoutCreditMayBeLostInACrash) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(30));
  ledger.broker_stopped(Stop::crash, at(50));
  const ConsumerRef d = consumer(60);
  delivered(d, 70, 1, "a", 1);
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L3_CreditAfterTheLeaseProvesNothing) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  published(10, "b");
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(70'000));
  delivered(c, 70'010, 2, "b");  // the Broker may have timed the first one out
  const ConsumerRef d = consumer(70'020);
  delivered(d, 70'030, 1, "a", 2);
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L4_AnAcknowledgedMessageThatNeverComesIsFound) {
  consumer(1);
  published(10, "a");
  EXPECT_EQ(ledger.missing(), 1u);
  ledger.audit(at(1'000));
  EXPECT_EQ(broken(), "L4");
}

TEST_F(Story, L4_ARefusedFinLeavesTheMessageUnfinished) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(30));
  ledger.command_refused(c, id(1), true, at(40));
  ledger.audit(at(1'000));
  EXPECT_EQ(broken(), "L4");
}

TEST_F(Story, L4_ALateRefusalOfAReqSaysNothingAboutTheFinOfTheNextDelivery) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a");
  ledger.req_sent(c, id(1), 0, at(70'000));
  delivered(c, 70'001, 1, "a", 2);
  ledger.fin_sent(c, id(1), at(70'002));
  ledger.command_refused(c, id(1), false, at(70'003));
  ledger.audit(at(80'000));
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L4_TheFirstChannelOwnsTheBacklogAndALaterOneTheWindow) {
  published(10, "old");
  const ConsumerRef c = consumer(200'000, 5);
  published(210'000, "recent");
  consumer(250'000, 5, "late");
  delivered(c, 260'000, 1, "old");
  delivered(c, 260'000, 2, "recent", 1, 210'000);
  ledger.fin_sent(c, id(1), at(260'001));
  ledger.fin_sent(c, id(2), at(260'001));
  EXPECT_EQ(ledger.missing(), 1u);  // "recent" in the later Channel
}

TEST_F(Story, L4_WhatEmptyMayHaveTakenIsNotMissed) {
  consumer(1);
  published(10, "a");
  const RemovalRef removal = ledger.removal_sent(Removal::empty_channel, "t", "c", at(20));
  published(25, "b");
  ledger.removal_ended(removal, true, at(30));
  EXPECT_EQ(ledger.missing(), 0u);
  published(40, "c");
  EXPECT_EQ(ledger.missing(), 1u);
}

TEST_F(Story, L4_AChannelCreatedAfterTheLastOneWasDeletedStartsBehindEverything) {
  consumer(1);
  published(10, "a");
  ledger.removal_ended(ledger.removal_sent(Removal::delete_channel, "t", "c", at(20)), true, at(30));
  consumer(40, 1, "late");
  EXPECT_EQ(ledger.missing(), 0u);
  published(50, "b");
  EXPECT_EQ(ledger.missing(), 1u);
}

TEST_F(Story, L5_TwoHoldersInOneLeaseAreFoundOnceTheFirstIsHeardAgain) {
  const ConsumerRef c = consumer(1);
  const ConsumerRef d = consumer(3);
  published(10, "a");
  delivered(c, 20, 1, "a");
  delivered(d, 30, 1, "a", 2);
  EXPECT_EQ(broken(), "");
  ledger.heard(c, at(5'000));
  EXPECT_EQ(broken(), "L5");
}

TEST_F(Story, L5_ADisconnectedHolderReleases) {
  const ConsumerRef c = consumer(1);
  const ConsumerRef d = consumer(3);
  published(10, "a");
  delivered(c, 20, 1, "a");
  delivered(d, 30, 1, "a", 2);  // the Broker saw the close before the client did
  ledger.closed(c, at(40));
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L6_TheSameAttemptsTwiceInOneRunIsFound) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a", 1);
  ledger.closed(c, at(30));
  const ConsumerRef d = consumer(40);
  delivered(d, 50, 1, "a", 1);
  EXPECT_EQ(broken(), "L6");
}

TEST_F(Story, L6_ACleanStopKeepsAttempts) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a", 1);
  ledger.broker_stopped(Stop::clean, at(30));
  const ConsumerRef d = consumer(40);
  delivered(d, 50, 1, "a", 1);
  EXPECT_EQ(broken(), "L6");
}

TEST_F(Story, L6_MoreAttemptsThanDeliveriesIsFound) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  delivered(c, 20, 1, "a", 50);
  EXPECT_EQ(broken(), "L6");
}

TEST_F(Story, L7_ADelayedPublishThatComesEarlyIsFound) {
  const ConsumerRef c = consumer(1);
  const std::vector<std::string> bodies{"a"};
  ledger.publish_answered(ledger.publish_sent("t", bodies, 5 * kSecond, at(10)), Answer::ok, at(12));
  delivered(c, 4'000, 1, "a");
  EXPECT_EQ(broken(), "L7");
}

TEST_F(Story, L7_AForwardStepOfTheWallClockEndsDelays) {
  const ConsumerRef c = consumer(1);
  const std::vector<std::string> bodies{"a"};
  ledger.publish_answered(ledger.publish_sent("t", bodies, 5 * kSecond, at(10)), Answer::ok, at(12));
  ledger.wall_stepped(10 * kSecond);
  delivered(c, 4'000, 1, "a");
  EXPECT_EQ(broken(), "");
}

TEST_F(Story, L7_ARequeuedMessageThatComesBackEarlyIsFound) {
  const ConsumerRef c = consumer(1);
  const ConsumerRef d = consumer(3);
  published(10, "a");
  delivered(c, 20, 1, "a");
  ledger.req_sent(c, id(1), 30 * kSecond, at(30));
  delivered(d, 1'000, 1, "a", 2);
  ledger.heard(c, at(9'000));
  EXPECT_EQ(broken(), "L7");
}

TEST_F(Story, L8_AnIdBelowAnAcknowledgedOneIsFound) {
  const ConsumerRef c = consumer(1, 5);
  published(10, "a");
  published(20, "b");
  delivered(c, 30, 2, "a");
  delivered(c, 30, 1, "b", 1, 20);
  ledger.fin_sent(c, id(1), at(40));
  ledger.fin_sent(c, id(2), at(40));
  ledger.audit(at(50));
  EXPECT_EQ(broken(), "L8");
}

TEST_F(Story, L8_APartOfARequestIsFound) {
  const ConsumerRef c = consumer(1, 5);
  const std::vector<std::string> bodies{"a", "b"};
  ledger.publish_answered(ledger.publish_sent("t", bodies, 0, at(10)), Answer::ambiguous, at(12));
  delivered(c, 20, 1, "a");
  ledger.fin_sent(c, id(1), at(30));
  ledger.audit(at(50));
  EXPECT_EQ(broken(), "L8");
}

TEST_F(Story, L9_WhatWasAcknowledgedBeforeEmptyMustNotComeBack) {
  const ConsumerRef c = consumer(1);
  published(10, "a");
  ledger.removal_ended(ledger.removal_sent(Removal::empty_channel, "t", "c", at(20)), true, at(30));
  delivered(c, 10'000, 1, "a");
  EXPECT_EQ(broken(), "L9");
}

TEST_F(Story, L10_MoreOutstandingThanRdyIsFound) {
  const ConsumerRef c = consumer(1, 1);
  published(10, "a");
  published(10, "b");
  delivered(c, 20, 1, "a");
  delivered(c, 20, 2, "b");
  EXPECT_EQ(broken(), "L10");
}

TEST_F(Story, TheReportNamesEachFindingWithItsTime) {
  consumer(1);
  published(10, "a");
  ledger.audit(at(1'000));
  EXPECT_NE(ledger.report().find("L4 at 1000 ms: t/c: \"a\" (id unknown) was acknowledged at 12 ms"), std::string::npos)
      << ledger.report();
}

}  // namespace
}  // namespace rq::ledger
