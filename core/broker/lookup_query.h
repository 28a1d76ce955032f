// Asks one nsqlookupd over HTTP which Channels of a Topic it knows (page 10 sections 5.1 and 7.1): GET /channels?topic=<topic>.
//
//  I1 Connecting has kConnectNs, everything kLimitNs; an answer has at most kAnswerBytesMax bytes.
//  I2 It lives until no Op of it is in flight; over() says when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/http/fetch.h"

namespace rq::broker {

class LookupQuery final : public http::Fetch {
 public:
  static constexpr std::int64_t kConnectNs = 2 * kSecond, kLimitNs = 5 * kSecond;
  static constexpr std::size_t kAnswerBytesMax = 1 << 20;

  // `address`: "host:port"; `topic`: a valid name.
  LookupQuery(io::Host& host, ChunkPool& pool, std::string address, std::string topic);

  void settle(Now now);
  void end();
  bool over() const { return over_ && idle(); }

  const std::string& topic() const { return topic_; }
  // Valid names of Channels that are not ephemeral, once it is over; none when the server could not say.
  const std::vector<std::string>& channels() const { return channels_; }

 private:
  void on_answer(int status, const std::string& body) override;
  void on_failure(std::string_view why) override;

  std::string server_, topic_;
  bool over_ = false;
  std::vector<std::string> channels_;
};

}  // namespace rq::broker
