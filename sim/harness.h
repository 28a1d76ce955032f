// A harness for scenarios with one Broker in the simulated world: start it, talk to it over raw NSQ connections and HTTP, crash
// it, cut its power, start it again. Everything is virtual time; nothing here sleeps.
//
//   sim::BrokerHarness h(1, [](broker::Config& c) { c.queue.max_ack_gap = 4; });
//   ASSERT_TRUE(h.start());
//   sim::Client& producer = h.connect();
//   producer.pub("t", "body");
//   ASSERT_TRUE(producer.wait_frames(1));
//   EXPECT_EQ(producer.frames()[0].payload, "OK");
//
//  I1 A Broker whose exit_state() leaves `running` ends at the end of that turn, as main() would end it.
//  I2 Every Client is a process of its own ("client-<n>"), so a test may partition it from "broker" or kill it.
//  I3 Calls of a Client only queue bytes; they travel while the world runs (run_for, wait_*).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/broker/broker.h"
#include "io/sim/world.h"
#include "sim/broker_process.h"
#include "sim/http_text.h"
#include "sim/nsq_wire.h"

namespace rq::sim {

// One scripted connection. Heartbeats are answered with NOP and kept out of frames() unless asked otherwise.
class Client {
 public:
  Client(World& world, SimDisk& disk, std::string_view name);  // makes the process
  ~Client();
  Client(const Client&) = delete;

  // Connects (again) and sends the magic unless it is empty. False when refused or not connected within the limit.
  bool connect(std::string_view address, std::string_view magic = "  V2", std::int64_t limit_ms = 10'000);
  void send(std::string_view bytes);
  void send_split(std::string_view bytes, std::size_t piece);  // one write per piece, each in a turn of its own
  void shutdown_write();                                       // after everything sent so far
  void close();
  void stop_reading(bool stop);         // true: leaves bytes unread, so that the Broker's writes back up
  void answer_heartbeats(bool answer);  // default true
  void keep_heartbeats(bool keep);      // default false; true: heartbeats appear in frames()

  // Received so far. frames() holds whole frames, raw() every byte.
  const std::vector<Frame>& frames() const;
  std::vector<Frame> take_frames();  // and forgets them
  const std::string& raw() const;
  std::vector<Message> messages() const;  // the message frames among frames()
  std::uint64_t heartbeats() const;
  bool connected() const;
  bool closed() const;     // the Broker closed or reset it
  bool was_reset() const;  // ... with a reset
  std::string local_address() const;

  // Run the world until it holds; false when the limit passed first. Counts are totals of what frames() holds.
  bool wait_frames(std::size_t count, std::int64_t limit_ms = 10'000);
  bool wait_messages(std::size_t count, std::int64_t limit_ms = 10'000);
  bool wait_closed(std::int64_t limit_ms = 10'000);
  // Takes the next frame that is not a message (messages stay); empty type -1 when none came.
  Frame answer(std::int64_t limit_ms = 10'000);
  // Takes the next message frame.
  std::optional<Message> message(std::int64_t limit_ms = 10'000);

  // The client's half of an upgrade (page 10 section 3.4); call it after IDENTIFY's answer, before the OK of the layer: frames()
  // gets nothing between the two. A client without a name shows no certificate.
  void start_tls(std::string_view common_name = "");
  static std::string tls_hello(std::string_view common_name = "");
  void await_tls();  // start_tls() whose hello went out before, behind IDENTIFY
  enum class Compression : std::uint8_t { snappy, deflate };
  void compress(Compression kind);
  // Sent and received past the compression, as a client that forgot it.
  void send_plain(std::string_view bytes);

  // Commands. They only send.
  void identify(std::string_view json);
  void pub(std::string_view topic, std::string_view body);
  void mpub(std::string_view topic, const std::vector<std::string>& bodies);
  void dpub(std::string_view topic, std::int64_t defer_ms, std::string_view body);
  void sub(std::string_view topic, std::string_view channel);
  void rdy(std::uint64_t count);
  void fin(std::string_view id);
  void req(std::string_view id, std::int64_t delay_ms);
  void touch(std::string_view id);
  void nop();
  void cls();

  Process& process() { return process_; }

 private:
  class Shard;  // in client.cc
  Shard& shard() const;
  void push(std::string_view bytes);

  World& world_;
  Process& process_;
};

class BrokerHarness {
 public:
  using Tweak = std::function<void(broker::Config&)>;
  // The network loses nothing but fragments reads; the disk is perfect with small latencies. Tests switch faults on through
  // world() and disk(). The configuration starts as harness_config().
  explicit BrokerHarness(std::uint64_t seed = 1, const Tweak& tweak = {}, WorldOptions options = {});
  ~BrokerHarness();

  World& world() { return *world_; }
  SimDisk& disk() { return *disk_; }
  Process& process() { return broker_->process(); }
  broker::Broker& broker() { return broker_->broker(); }  // must be running
  broker::Config& config() { return broker_->config; }    // used by the next start; the data directory is "data" on disk()
  Instant now() const { return world_->now(); }

  void boot();                                                          // starts the process and returns at once
  bool start(std::int64_t limit_ms = 60'000);                           // boot(), and waits until it serves
  std::string start_expecting_refusal(std::int64_t limit_ms = 60'000);  // exit_reason(); "" if it served after all
  bool stop(std::int64_t limit_ms = 60'000);                            // SIGTERM; true after a clean exit
  void kill();                                                          // SIGKILL
  void power_loss();                                                    // kill, and the disk loses its cache
  bool restart(std::int64_t limit_ms = 60'000);                         // kill (when running) and start
  bool running() const { return broker_->running(); }
  std::optional<broker::Broker::Exit> last_exit() const;  // of the last process that ended by itself
  std::string last_exit_reason() const;

  void run_for(std::int64_t ms);
  bool run_until(const std::function<bool()>& condition, std::int64_t limit_ms = 10'000);

  std::string tcp_address() const { return broker_->config.network.tcp_address; }
  std::string http_address() const { return broker_->config.network.http_address; }
  Client& client();   // a new one, not connected
  Client& connect();  // a new one, connected, magic sent
  // SUB, waits for its OK, then RDY.
  Client& consumer(std::string_view topic, std::string_view channel, std::uint64_t rdy = 1, std::string_view identify = "");

  // One request on a connection of its own.
  HttpReply http(std::string_view method, std::string_view target, std::string_view body = "",
                 const std::vector<std::pair<std::string, std::string>>& headers = {}, std::int64_t limit_ms = 30'000);
  // Sends the bytes as they are and collects everything until the Broker closes (half-closes after sending when asked).
  std::string http_raw(std::string_view bytes, bool half_close = false, std::int64_t limit_ms = 30'000);

  // PUB and its answer on a shared connection; the payload of the answer ("OK" or an error).
  std::string publish(std::string_view topic, std::string_view body);

  std::vector<std::string> log;  // "<level> <event> <fields>" of the Broker

 private:
  std::unique_ptr<World> world_;
  SimDisk* disk_ = nullptr;
  SimDisk* client_disk_ = nullptr;
  std::unique_ptr<BrokerProcess> broker_;
  std::vector<std::unique_ptr<Client>> clients_;
  Client* publisher_ = nullptr;
};

// Defaults for scenarios: tcp 127.0.0.1:4150, http 127.0.0.1:4151, data path "data", no free-space minimum.
broker::Config harness_config();

}  // namespace rq::sim
