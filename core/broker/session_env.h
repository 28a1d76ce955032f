// What all sessions of a Broker share. A session calls down (engine, net, budgets) and records that it has work in `dirty`;
// it never calls the Broker.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/slice.h"
#include "core/broker/admission.h"
#include "core/broker/auth_service.h"
#include "core/broker/config.h"
#include "core/broker/output.h"
#include "core/broker/server_view.h"
#include "core/io/turn.h"
#include "core/nsq/identify.h"
#include "core/queue/engine.h"

namespace rq::broker {

struct SessionEnv {
  io::Host& host;
  const io::Turn& turn;
  const Config& config;
  queue::Engine& engine;
  ChunkPool& pool;
  ByteBudget& node_budget;
  BrokerCounters& counters;
  const Gates& gates;
  AuthService& auth;
  std::vector<std::uint32_t>& dirty;  // slots of sessions with work for this turn
  nsq::IdentifyLimits identify;
  Output::Spare spare{};  // of batches of messages
};

nsq::IdentifyLimits identify_limits(const Config& config);

}  // namespace rq::broker
