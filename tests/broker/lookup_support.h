// A Broker with two nsqlookupd servers beside it, neither of them started.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/lookup_server.h"
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {

using sim::LookupServer;
using Names = std::set<std::string>;

inline constexpr const char* kFirst = "127.0.0.1:4160";
inline constexpr const char* kSecond = "127.0.0.1:4260";

class Lookup : public testing::Test {
 protected:
  Lookup() { h.config().network.nsqlookupd_tcp_addresses = {kFirst}; }
  bool shows(const LookupServer& server, const Names& names, std::int64_t limit_ms = 3'000) {
    return h.run_until([&] { return server.names() == names; }, limit_ms);
  }
  std::size_t heard(const LookupServer& server, const std::string& command) {
    return static_cast<std::size_t>(std::count(server.commands.begin(), server.commands.end(), command));
  }
  std::size_t logged(std::string_view event) {
    return static_cast<std::size_t>(std::count_if(
        h.log.begin(), h.log.end(), [&](const std::string& line) { return line.find(event) != std::string::npos; }));
  }

  BrokerHarness h;
  sim::SimDisk& disk = h.world().make_disk("lookup");
  LookupServer first{h.world(), disk, "lookup-1", kFirst}, second{h.world(), disk, "lookup-2", kSecond};
};

}  // namespace rq::broker::test
