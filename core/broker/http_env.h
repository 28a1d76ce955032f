// What all HTTP connections of a Broker share. A connection calls down (engine, net, budgets); it never calls the server: it
// records that it has work in `dirty`, and that it waits for the engine in `waiters`.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/base/deadline_lanes.h"
#include "core/base/slice.h"
#include "core/broker/server_view.h"
#include "core/io/ports.h"

namespace rq::broker {

class HttpConnection;

// What a request deletes; without a Channel it is the Topic.
struct RemovedName {
  std::string topic, channel;
};

// An engine call that has not been answered. Outlives its connection, so that its budget is given back when the engine is done.
struct HttpWaiter {
  HttpConnection* connection = nullptr;  // null: it closed, the answer is dropped
  std::uint64_t charge = 0;              // of the node's publish budget
  std::uint64_t messages = 0, bytes = 0;
  std::unique_ptr<RemovedName> removes;  // the lookups hear of it once it is done
};

struct HttpEnv {
  // Text of statistics made in one turn, by one row more at most. Some 0.3 ms.
  static constexpr std::size_t kRenderBytesPerTurn = 64 * 1024;

  HttpEnv(io::Host& host_in, ServerView& view_in) : host(host_in), view(view_in) {}

  io::Host& host;
  ServerView& view;
  ChunkPool pool{16 * 1024, 16};
  DeadlineLanes<HttpConnection> deadlines;
  std::vector<std::uint32_t> dirty;  // slots with work for this turn
  boost::unordered_flat_map<std::uint64_t, HttpWaiter> waiters;
  std::uint64_t last_waiter = 0;
  std::deque<std::uint32_t> renderings;  // slots whose answers are being rendered, the oldest first
  std::size_t render_left = kRenderBytesPerTurn;
  std::uint64_t output_bytes = 0;  // of all responses not yet written, and of what those are made from that wait to be rendered
  std::uint64_t open = 0;          // connections
  std::uint32_t parked = 0;        // requests that wait for the data directory
  bool closing = false;            // responses end their connections
  Now now;                         // of this turn, from expire() on
  std::string date;                // of now
  std::int64_t date_second = -1;
};

}  // namespace rq::broker
