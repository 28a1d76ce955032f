// What parts of the HTTP side see of a Broker, set by a test: an engine by itself, and plain values for the rest.
#pragma once

#include <gtest/gtest.h>

#include "core/broker/server_view.h"
#include "tests/queue/engine_world.h"

namespace rq::broker::test {

class FakeView final : public ServerView {
 public:
  queue::EngineWorld world{1};
  Config settings;
  BrokerCounters counted;
  LogLevel level;
  io::DiskUsage disk;
  std::uint64_t nsq_connections = 0, feed_connections = 0, publish_bytes = 0;
  bool accepts = true, delivers = true, stops = false, pressed = false;

  const Config& config() const override { return settings; }
  queue::Engine& engine() override { return world.engine(); }
  std::int64_t start_time_unix() const override { return 0; }
  std::uint64_t tcp_connections() const override { return nsq_connections; }
  std::uint64_t websocket_connections() const override { return feed_connections; }
  void clients(std::vector<ClientRow>&) const override {}
  BrokerCounters& counters() override { return counted; }
  LogLevel& log_level() override { return level; }
  bool starting() const override { return false; }
  bool accepting() const override { return accepts; }
  bool stopping() const override { return stops; }
  bool delivering() const override { return delivers; }
  void set_drain(bool enabled, bool freeze) override {
    accepts = !enabled;
    delivers = !freeze;
  }
  TokenStore::Verdict check_token(TokenClass, std::string_view, std::string_view) const override {
    return TokenStore::Verdict::ok;
  }
  bool disk_pressure() const override { return pressed; }
  const io::DiskUsage& disk_usage() const override { return disk; }
  bool reserve_publish_bytes(std::uint64_t bytes) override {
    publish_bytes += bytes;
    return true;
  }
  void release_publish_bytes(std::uint64_t bytes) override { publish_bytes -= bytes; }
  std::uint64_t publish_bytes_in_flight() const override { return publish_bytes; }
  std::uint16_t tcp_port() const override { return 4150; }
  std::uint16_t http_port() const override { return 4151; }
  // Nobody asks for them here.
  LiveFeeds& live_feeds() override { std::abort(); }
  LookupRegistration& lookups() override { std::abort(); }
};

}  // namespace rq::broker::test
