#include "services/rustqueued/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/base/check.h"
#include "core/broker/auth_query.h"
#include "core/broker/broker.h"
#include "core/broker/engine_options.h"
#include "core/broker/token_classes.h"
#include "io/real/process.h"
#include "io/real/runtime.h"
#include "io/real/signals.h"

namespace rq::service {
namespace {

// Starts the Broker inside the first turn, like everything else that it does.
class BrokerShard final : public io::Shard {
 public:
  explicit BrokerShard(broker::Broker& broker) : broker_(broker) {}
  void expire(Now now) override {
    if (!started_) broker_.start();
    started_ = true;
    broker_.expire(now);
  }
  void settle(Now now) override { broker_.settle(now); }
  Instant next_deadline() const override { return broker_.next_deadline(); }

 private:
  broker::Broker& broker_;
  bool started_ = false;
};

real::BarrierStrategy strategy_of(broker::BarrierStrategy configured) {
  switch (configured) {
    case broker::BarrierStrategy::automatic:
      return real::BarrierStrategy::automatic;
    case broker::BarrierStrategy::fdatasync:
      return real::BarrierStrategy::fdatasync;
    case broker::BarrierStrategy::syncfs:
      return real::BarrierStrategy::syncfs;
  }
  return real::BarrierStrategy::automatic;
}

real::TlsOptions tls_options(const broker::Config::Tls& tls) {
  real::TlsOptions options;
  options.certificate_file = tls.certificate_file;
  options.private_key_file = tls.private_key_file;
  options.client_ca_file = tls.client_ca_file.value_or("");
  options.tls1_3_only = tls.min_version == broker::TlsVersion::tls1_3;
  switch (tls.effective_client_auth()) {
    case broker::ClientAuth::none:
      break;
    case broker::ClientAuth::request:
      options.client_certificates = real::ClientCertificates::request;
      break;
    case broker::ClientAuth::require:
      options.client_certificates = real::ClientCertificates::require;
      break;
    case broker::ClientAuth::require_verify:
      options.client_certificates = real::ClientCertificates::require_verify;
      break;
  }
  return options;
}

bool asks_over_tls(const broker::Config& config) {
  const auto& addresses = config.security.auth_http_addresses;
  return std::any_of(addresses.begin(), addresses.end(),
                     [](const std::string& address) { return broker::parse_auth_address(address).https(); });
}

constexpr std::uint64_t kReadThreadsMax = 256;

real::StdoutLog* g_log = nullptr;  // for on_check

// A bug in this program: the last line says where, and what was logged before is not lost with the process.
void on_check(const char* file, int line, const char* expression) {
  fmt::print(stderr, "Error: check failed at {}:{}: {}\n", file, line, expression);
  std::fflush(stderr);
  if (g_log != nullptr) g_log->emergency();
}

void log_start(real::StdoutLog& log, const broker::Config& config, const broker::Process& process) {
  log.log(io::Level::info, "starting",
          fmt::format("version={} node_id={} tcp={} http={} format=7 data_path=\"{}\" file_limit={} write_handles={}", RQ_VERSION,
                      config.node.id, config.network.tcp_address, config.network.http_address, config.storage.data_path,
                      process.file_limit, broker::engine_options(config, process).write_handles_max));
  std::string names;
  for (const std::string& name : broker::without_effect(config)) names += (names.empty() ? "" : ",") + name;
  const auto& tls = config.security.tls;
  if (tls.present && !tls.required && tls.effective_client_auth() != broker::ClientAuth::none) {
    log.log(io::Level::warn, "client_certificates_optional",
            "reason=\"security.tls.required is false: clear sessions need none\"");
  }
  if (!names.empty()) log.log(io::Level::warn, "configuration_without_effect", "keys=" + names);
  const std::string untold = real::syncfs_refusal(strategy_of(config.storage.barrier), real::kernel_release());
  if (!untold.empty()) log.log(io::Level::warn, "storage_barrier_fdatasync", fmt::format("reason=\"{}\"", untold));
  const std::string open = broker::open_token_classes(config.security);
  if (!open.empty()) log.log(io::Level::warn, "routes_without_token", "classes=" + open);
}

}  // namespace

int serve(const broker::Config& config, real::LogFilter filter) {
  const broker::Process process{real::process_id(), real::raise_file_limit()};
  real::RuntimeOptions options;
  options.disk = {strategy_of(config.storage.barrier), config.storage.data_path};
  options.log = filter;
  options.seed = real::entropy();
  options.net.threads = static_cast<unsigned>(config.network.io_threads);
  // Threads beside those that may wait for a device: reads and whatever else is quick. 0 keeps what suits any machine.
  if (config.storage.payload_read_workers > 0)
    options.pool.threads_max = options.pool.slow_max + static_cast<unsigned>(std::min<std::uint64_t>(
                                                           config.storage.payload_read_workers, kReadThreadsMax));
  auto* runtime = new real::Runtime(options);
  runtime->log().set_format(config.log_format == "json" ? real::LogFormat::json : real::LogFormat::text);
  g_log = &runtime->log();
  set_check_handler(&on_check);
  log_start(runtime->log(), config, process);

  const auto refuse = [&](const std::string& why) {
    fmt::print(stderr, "Error: security.tls: {}\n", why);
    runtime->net().stop();
    runtime->log().finish();
    std::fflush(nullptr);
    return 1;
  };
  if (config.security.tls.present) {
    auto context = real::tls_server_context(tls_options(config.security.tls));
    if (!context) return refuse(context.error());
    runtime->net().use_tls(std::move(*context));
  }
  if (asks_over_tls(config)) {
    const auto& tls = config.security.tls;
    auto context = real::tls_client_context(tls.client_ca_file.value_or(""), tls.min_version == broker::TlsVersion::tls1_3);
    if (!context) return refuse(context.error());
    runtime->net().use_client_tls(std::move(*context));
  }

  // The Broker makes the directory itself; missing parents are made here.
  std::error_code ignored;
  const std::filesystem::path parent = std::filesystem::path(config.storage.data_path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);

  auto* broker = new broker::Broker(runtime->host(), runtime->turn(), config, process);
  broker->log_level().least = filter.off ? std::nullopt : std::optional(filter.least);
  auto* shard = new BrokerShard(*broker);
  auto* signals = new real::StopSignals(runtime->loop(), [&](int signal) {
    runtime->log().log(io::Level::info, "stop_requested", fmt::format("signal={}", signal));
    broker->request_stop();
  });
  static_cast<void>(signals);
  while (broker->exit_state() == broker::Broker::Exit::running) {
    if (runtime->loop().step(*shard)) runtime->log().flush();
    runtime->log().set_filter({!broker->log_level().least, broker->log_level().least.value_or(io::Level::error)});
  }
  runtime->net().stop();
  const bool clean = broker->exit_state() == broker::Broker::Exit::clean;
  runtime->log().log(clean ? io::Level::info : io::Level::error, "exit", clean ? "status=0" : "status=1");
  runtime->log().finish();
  if (!clean) fmt::print(stderr, "Error: {}\n", broker->exit_reason());
  std::fflush(nullptr);
  return clean ? 0 : 1;
}

}  // namespace rq::service
