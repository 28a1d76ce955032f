// A Broker on the real ports in a thread of its own, on a directory and ports of its own; what its loop allocates is counted.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "core/broker/broker.h"
#include "io/real/runtime.h"
#include "tests/allocations/counter.h"

namespace rq::test {

class BrokerThread {
 public:
  BrokerThread() {
    directory_ = (std::filesystem::temp_directory_path() / "rq_allocations_XXXXXX").string();
    RQ_CHECK(::mkdtemp(directory_.data()) != nullptr);
    thread_ = std::thread([this] { run(); });
    while (port_ == 0) std::this_thread::yield();
  }
  ~BrokerThread() {
    stop_ = true;
    runtime_->loop().wake();
    thread_.join();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  int port() const { return port_; }

 private:
  void run() {
    broker::Config config;
    config.network.tcp_address = "127.0.0.1:0";
    config.network.http_address = "127.0.0.1:0";
    config.storage.data_path = directory_ + "/data";
    config.storage.min_free_bytes = 0;
    config.storage.disk_high_watermark_percent = 100;
    config.storage.disk_low_watermark_percent = 99;
    real::RuntimeOptions options;
    options.log = real::LogFilter::parse("error");
    // Never freed, as in the program: calls may be in flight at the end.
    runtime_ = new real::Runtime(options);
    broker::Broker& broker = *new broker::Broker(runtime_->host(), runtime_->turn(), config);
    const CountAllocations counted;
    broker.start();
    while (broker.exit_state() == broker::Broker::Exit::running) {
      if (stop_) broker.request_stop();
      runtime_->loop().step(broker);
      if (port_ == 0 && broker.serving()) port_ = broker.tcp_port();
    }
  }

  std::string directory_;
  real::Runtime* runtime_ = nullptr;
  std::atomic<int> port_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rq::test
