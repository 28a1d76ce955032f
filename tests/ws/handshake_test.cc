#include "core/ws/handshake.h"

#include <gtest/gtest.h>

namespace rq::ws {
namespace {

TEST(WsHandshake, TheExampleOfTheRfc) { EXPECT_EQ(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); }

TEST(WsHandshake, ListsAreSearchedByWholeItems) {
  EXPECT_TRUE(list_has("keep-alive, Upgrade", "upgrade", true));
  EXPECT_TRUE(list_has("a,\t rustqueue.live.v1 ,b", "rustqueue.live.v1", false));
  EXPECT_FALSE(list_has("RustQueue.live.v1, rustqueue.live.v10", "rustqueue.live.v1", false));
  EXPECT_FALSE(list_has("", "x", false));
  EXPECT_FALSE(list_has(",,", "x", false));
}

TEST(WsHandshake, AnOfferIsWholeOrRefused) {
  const UpgradeOffer good{"Upgrade", "websocket", "k", "13", ""};
  EXPECT_EQ(offer_status(good), 0);
  EXPECT_EQ(offer_status({"keep-alive, UPGRADE", "WebSocket", "k", "13", "x"}), 0);
  EXPECT_EQ(offer_status({"keep-alive", "websocket", "k", "13", ""}), 426);
  EXPECT_EQ(offer_status({"upgrade", "h2c", "k", "13", ""}), 426);
  EXPECT_EQ(offer_status({"upgrade", "websocket", "", "13", ""}), 400);
  EXPECT_EQ(offer_status({"upgrade", "websocket", "k", "8", ""}), 426);
  EXPECT_EQ(offer_status({}), 426);
}

}  // namespace
}  // namespace rq::ws
