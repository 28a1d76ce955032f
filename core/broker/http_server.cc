#include "core/broker/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/civil_time.h"
#include "core/broker/lookup_registration.h"

namespace rq::broker {

HttpServer::HttpServer(io::Host& host, ServerView& view) : env_(host, view), listener_(host) {}
HttpServer::~HttpServer() = default;

void HttpServer::listen(std::string_view address) {
  listener_.listen(address);
  listener_.enable();
}

void HttpServer::begin_turn(Now now) {
  env_.now = now;
  const std::int64_t second = now.wall.ns / kSecond;
  if (second != env_.date_second) {
    env_.date_second = second;
    env_.date = http_date(second);
  }
}

void HttpServer::expire(Now now) {
  begin_turn(now);
  env_.render_left = HttpEnv::kRenderBytesPerTurn;
  while (env_.deadlines.earliest() <= now.mono) {
    HttpConnection* connection = env_.deadlines.first();
    env_.deadlines.disarm(*connection);
    connection->expired();
  }
  take_accepted();
  work();
}

void HttpServer::settle(Now now) {
  begin_turn(now);
  take_accepted();
  work();
  render();
  listener_.settle(now);
}

Instant HttpServer::next_deadline() const {
  if (!env_.dirty.empty() || !env_.renderings.empty() || (env_.parked > 0 && !env_.view.starting())) return env_.now.mono;
  return std::min(listener_.next_deadline(), env_.deadlines.earliest());
}

void HttpServer::take_accepted() {
  for (const io::StreamId stream : listener_.take_accepted()) {
    const bool full = env_.open >= env_.view.config().limits.max_http_connections;
    if (env_.closing || (full && !make_room())) {
      refuse(stream);
      continue;
    }
    if (!full) at_limit_ = false;
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot] = std::make_unique<HttpConnection>(env_, slot, stream);
    ++env_.open;
    slots_[slot]->start();
  }
}

bool HttpServer::make_room() {
  HttpConnection* idle = nullptr;
  for (const auto& connection : slots_) {
    if (connection == nullptr || !connection->between_requests()) continue;
    if (idle == nullptr || connection->deadline() < idle->deadline()) idle = connection.get();
  }
  if (idle == nullptr) return false;
  idle->close();
  return true;
}

void HttpServer::refuse(io::StreamId stream) {
  RQ_SOMETIMES(!env_.closing, "http.connection_limit");
  if (!env_.closing && !std::exchange(at_limit_, true))
    env_.host.log.log(
        io::Level::warn, "http_connection_limit",
        fmt::format("limit={} peer={}", env_.view.config().limits.max_http_connections, env_.host.net.info(stream).address));
  env_.host.net.close(stream);
}

// Connections with work take it, and what they mark while working, until none has any.
void HttpServer::work() {
  if (env_.parked > 0 && !env_.view.starting()) {
    for (auto& connection : slots_)
      if (connection != nullptr) connection->opened();
  }
  while (!env_.dirty.empty()) {
    std::vector<std::uint32_t> batch;
    batch.swap(env_.dirty);
    for (const std::uint32_t slot : batch) {
      HttpConnection& connection = *slots_[slot];
      connection.work();
      if (!connection.dead()) continue;
      slots_[slot].reset();
      free_.push_back(slot);
      --env_.open;
    }
    // A connection that closed while working marked its slot again; it is gone by now.
    std::erase_if(env_.dirty, [&](std::uint32_t slot) { return slots_[slot] == nullptr; });
  }
}

// One answer after the other. A slot whose connection has gone, or renders nothing any more, has nothing to say.
void HttpServer::render() {
  while (!env_.renderings.empty() && env_.render_left > 0) {
    HttpConnection* connection = slots_[env_.renderings.front()].get();
    if (connection != nullptr && !connection->render()) continue;
    env_.renderings.pop_front();
  }
}

// --- the engine's answers

HttpWaiter HttpServer::take_waiter(queue::WaiterId id) {
  const auto found = env_.waiters.find(static_cast<std::uint64_t>(id) & ((std::uint64_t{1} << 56) - 1));
  RQ_CHECK(waiter_kind(id) == WaiterKind::http && found != env_.waiters.end());
  HttpWaiter waiter = std::move(found->second);
  env_.waiters.erase(found);
  if (waiter.charge > 0) env_.view.release_publish_bytes(waiter.charge);
  return waiter;
}

void HttpServer::note_removal(const HttpWaiter& waiter, const queue::Outcome& outcome) {
  if (waiter.removes != nullptr && outcome.ok()) env_.view.lookups().removed(waiter.removes->topic, waiter.removes->channel);
}

void HttpServer::on_published(const queue::PublishDone& done) {
  if (waiter_kind(done.waiter) != WaiterKind::http) return;
  const HttpWaiter waiter = take_waiter(done.waiter);
  if (done.outcome.ok()) {
    env_.view.counters().publish_messages += waiter.messages;
    env_.view.counters().publish_bytes += waiter.bytes;
  }
  if (waiter.connection != nullptr) waiter.connection->published(done);
}

void HttpServer::on_admin(const queue::AdminDone& done) {
  if (waiter_kind(done.waiter) != WaiterKind::http) return;
  const HttpWaiter waiter = take_waiter(done.waiter);
  note_removal(waiter, done.outcome);
  if (waiter.connection != nullptr) waiter.connection->admin_done(done);
}

void HttpServer::on_stats(queue::StatsDone& done) {
  if (waiter_kind(done.waiter) != WaiterKind::http) return;
  const HttpWaiter waiter = take_waiter(done.waiter);
  if (waiter.connection != nullptr) waiter.connection->stats_done(done);
}

void HttpServer::on_managed(const queue::ManagedDone& done) {
  if (waiter_kind(done.waiter) != WaiterKind::http) return;
  const HttpWaiter waiter = take_waiter(done.waiter);
  note_removal(waiter, done.outcome);
  if (waiter.connection != nullptr) waiter.connection->managed_done(done);
}

void HttpServer::on_scrubbed(const queue::ScrubDone& done) {
  if (waiter_kind(done.waiter) != WaiterKind::http) return;
  const HttpWaiter waiter = take_waiter(done.waiter);
  if (waiter.connection != nullptr) waiter.connection->scrub_done(done);
}

// --- the end

void HttpServer::check_invariants() const { RQ_CHECK(env_.open > 0 || env_.output_bytes == 0); }

void HttpServer::stop_accepting() {
  env_.closing = true;
  listener_.close();
  for (auto& connection : slots_)
    if (connection != nullptr) connection->stop();
}

void HttpServer::close_all() {
  stop_accepting();
  for (auto& connection : slots_)
    if (connection != nullptr) connection->close();
}

}  // namespace rq::broker
