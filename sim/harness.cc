#include "sim/harness.h"

namespace rq::sim {

broker::Config harness_config() {
  broker::Config config;
  config.network.tcp_address = "127.0.0.1:4150";
  config.network.http_address = "127.0.0.1:4151";
  config.storage.data_path = "data";
  config.storage.min_free_bytes = 0;
  return config;
}

BrokerHarness::BrokerHarness(std::uint64_t seed, const Tweak& tweak, WorldOptions options)
    : world_(std::make_unique<World>(seed, options)) {
  disk_ = &world_->make_disk("broker");
  client_disk_ = &world_->make_disk("clients");
  world_->set_log([this](std::string_view process, io::Level level, std::string_view event, std::string_view fields) {
    static constexpr const char* kLevels[] = {"debug", "info", "warn", "error"};
    if (process != "broker") return;
    log.push_back(std::string(kLevels[static_cast<int>(level)]).append(" ").append(event).append(" ").append(fields));
  });
  broker_ = std::make_unique<BrokerProcess>(*world_, "broker", *disk_, harness_config());
  if (tweak) tweak(broker_->config);
}

BrokerHarness::~BrokerHarness() = default;

void BrokerHarness::boot() { broker_->boot(); }

bool BrokerHarness::start(std::int64_t limit_ms) {
  boot();
  run_until([&] { return broker_->serving() || !running(); }, limit_ms);
  return broker_->serving();
}

std::string BrokerHarness::start_expecting_refusal(std::int64_t limit_ms) {
  boot();
  run_until([&] { return broker_->serving() || !running(); }, limit_ms);
  return broker_->ended ? broker_->ended->reason : "";
}

bool BrokerHarness::stop(std::int64_t limit_ms) {
  broker_->request_stop();
  run_until([&] { return !running(); }, limit_ms);
  return !running() && broker_->ended && broker_->ended->exit == broker::Broker::Exit::clean;
}

void BrokerHarness::kill() { broker_->kill(); }

void BrokerHarness::power_loss() {
  broker_->kill();
  disk_->power_loss();
}

bool BrokerHarness::restart(std::int64_t limit_ms) {
  kill();
  return start(limit_ms);
}

std::optional<broker::Broker::Exit> BrokerHarness::last_exit() const {
  if (!broker_->ended) return std::nullopt;
  return broker_->ended->exit;
}
std::string BrokerHarness::last_exit_reason() const { return broker_->ended ? broker_->ended->reason : ""; }

void BrokerHarness::run_for(std::int64_t ms) { world_->run_for(ms * kMillisecond); }
bool BrokerHarness::run_until(const std::function<bool()>& condition, std::int64_t limit_ms) {
  return world_->run_until(condition, limit_ms * kMillisecond);
}

Client& BrokerHarness::client() {
  clients_.push_back(std::make_unique<Client>(*world_, *client_disk_, "client-" + std::to_string(clients_.size() + 1)));
  return *clients_.back();
}

Client& BrokerHarness::connect() {
  Client& fresh = client();
  fresh.connect(tcp_address());
  return fresh;
}

Client& BrokerHarness::consumer(std::string_view topic, std::string_view channel, std::uint64_t rdy, std::string_view identify) {
  Client& fresh = connect();
  if (!identify.empty()) {
    fresh.identify(identify);
    fresh.answer();
  }
  fresh.sub(topic, channel);
  fresh.answer();
  fresh.rdy(rdy);
  return fresh;
}

HttpReply BrokerHarness::http(std::string_view method, std::string_view target, std::string_view body,
                              const std::vector<std::pair<std::string, std::string>>& headers, std::int64_t limit_ms) {
  Client& fresh = client();
  if (!fresh.connect(http_address(), "", limit_ms)) return {};
  fresh.send(http_request(method, target, body, headers));
  std::optional<HttpReply> reply;
  const bool head = method == "HEAD";
  run_until(
      [&] {
        reply = parse_reply(fresh.raw(), fresh.closed(), head);
        return reply.has_value() || fresh.closed();
      },
      limit_ms);
  fresh.close();
  return reply.value_or(HttpReply{});
}

std::string BrokerHarness::http_raw(std::string_view bytes, bool half_close, std::int64_t limit_ms) {
  Client& fresh = client();
  if (!fresh.connect(http_address(), "", limit_ms)) return "";
  fresh.send(bytes);
  if (half_close) fresh.shutdown_write();
  fresh.wait_closed(limit_ms);
  return fresh.raw();
}

std::string BrokerHarness::publish(std::string_view topic, std::string_view body) {
  if (publisher_ == nullptr) publisher_ = &client();
  if (!publisher_->connected()) publisher_->connect(tcp_address());
  if (!publisher_->connected()) return "";
  publisher_->pub(topic, body);
  return publisher_->answer().payload;
}

}  // namespace rq::sim
