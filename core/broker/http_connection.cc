// The connection: reading, framing, deadlines, writing. What the routes do stands in http_actions.cc.
#include "core/broker/http_connection.h"

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/admission.h"
#include "core/broker/cors.h"
#include "core/broker/http_admin.h"
#include "core/broker/http_publish.h"
#include "core/broker/json_body.h"
#include "core/storage/types.h"

namespace rq::broker {
namespace {

http::Response still_opening() {
  http::Response response = http::error_response(503, "E_STORAGE", "the data directory is being opened");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

HttpConnection::HttpConnection(HttpEnv& env, std::uint32_t slot, io::StreamId stream) : env_(env), slot_(slot), stream_(stream) {
  io::bind<&HttpConnection::on_read>(read_, this);
  io::bind<&HttpConnection::on_write>(write_, this);
}

HttpConnection::~HttpConnection() {
  if (armed()) env_.deadlines.disarm(*this);
}

void HttpConnection::start() {
  arm(kHeadTimeoutNs);
  read_more();
}

// --- completions: only recorded here, so that work() runs with this turn's time

void HttpConnection::on_read(io::Op& op) {
  if (phase_ != Phase::closed) {
    if (op.error.code == io::Errc::eof) {
      peer_done_ = true;
    } else if (op.error) {
      lost_ = true;
    } else {
      input_ = std::move(read_.data);
    }
  }
  read_.data = Slice();
  mark_dirty();
}

void HttpConnection::on_write(io::Op& op) {
  if (op.error) {
    lost_ = true;
  } else {
    sent_ += op.value;
    write_done_ = true;
  }
  mark_dirty();
}

void HttpConnection::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  env_.dirty.push_back(slot_);
}

void HttpConnection::work() {
  dirty_ = false;
  if (phase_ == Phase::closed) return;
  if (lost_) return close();
  if (write_done_) {
    write_done_ = false;
    flush();
    if (phase_ == Phase::writing) {
      if (write_.in_flight) {
        arm_write();
      } else {
        written();
      }
    }
  }
  take_input();
}

// --- deadlines

void HttpConnection::arm(std::int64_t timeout_ns) {
  disarm();
  env_.deadlines.arm(*this, env_.now.mono + timeout_ns, timeout_ns);
}
void HttpConnection::arm_write() {
  disarm();
  env_.deadlines.arm(*this, std::min(env_.now.mono + kWriteTimeoutNs, write_until_), kWriteTimeoutNs);
}
void HttpConnection::disarm() {
  if (armed()) env_.deadlines.disarm(*this);
}

void HttpConnection::expired() {
  RQ_CHECK(!armed());
  switch (phase_) {
    case Phase::parked:
      --env_.parked;
      RQ_SOMETIMES(true, "http.opening_took_too_long");
      return respond_closing(still_opening());
    case Phase::body:
    case Phase::discard:
      RQ_SOMETIMES(true, "http.body_timed_out");
      return respond_closing(http::error_response(408, "E_BODY_TIMEOUT"));
    case Phase::head:
      // A client that began a request is told; one that is merely idle is not.
      if (parser_.started()) return respond_closing(http::error_response(408, "E_HEAD_TIMEOUT"));
      return close();
    case Phase::writing:
    case Phase::linger:
      return close();
    case Phase::waiting:
    case Phase::closed:
      break;
  }
  RQ_CHECK(false);
}

// --- input

void HttpConnection::read_more() {
  if (read_.in_flight || peer_done_) return;
  env_.host.net.read_some(read_, stream_, env_.pool);
}

void HttpConnection::take_input() {
  while (phase_ == Phase::head || phase_ == Phase::body || phase_ == Phase::discard || phase_ == Phase::linger) {
    if (phase_ == Phase::linger) input_ = Slice();
    if (input_.empty()) {
      return peer_done_ ? cut_short() : read_more();
    }
    if (phase_ == Phase::body && charge_ > 0 && parser_.request().chunked && !charge_body(body_.capacity_with(input_.size())))
      return;
    const bool was_started = parser_.started();
    http::BodySink& sink = phase_ == Phase::body ? static_cast<http::BodySink&>(body_) : discard_;
    const auto used = static_cast<std::uint32_t>(parser_.feed(input_.bytes(), sink));
    input_ = input_.sub(used, input_.size() - used);
    if (parser_.stage() == http::RequestParser::Stage::failed) {
      RQ_SOMETIMES(true, "http.malformed_request");
      return broken_request();
    }
    const bool complete = parser_.stage() == http::RequestParser::Stage::complete;
    switch (phase_) {
      case Phase::head:
        if (parser_.started() && !was_started && served_) arm(kHeadTimeoutNs);
        if (parser_.stage() != http::RequestParser::Stage::head) on_head();
        break;
      case Phase::body:
        if (body_.overflow()) return respond_closing(too_long());
        if (complete) act();
        break;
      case Phase::discard:
        if (!complete && discard_.bytes <= kDiscardBytesMax) break;
        if (early_) {
          respond(std::move(*early_));
        } else {
          act();
        }
        break;
      default:
        break;
    }
  }
}

// The peer has finished writing, and a whole request is not there (page 10 section 6.3: a body that cannot be read).
void HttpConnection::cut_short() {
  if (phase_ == Phase::body || phase_ == Phase::discard) return broken_request();
  if (phase_ == Phase::head && parser_.started()) return respond_closing(http::refusal_response(400));
  close();
}

// What cannot be taken apart ends the connection; a body that nobody wanted changes nothing about the answer.
void HttpConnection::broken_request() {
  if (phase_ == Phase::body) {
    return respond_closing(body_.overflow() ? too_long() : http::error_response(500, "INTERNAL_ERROR"));
  }
  if (phase_ == Phase::head) return respond_closing(http::refusal_response(parser_.failure_status()));
  respond_closing(early_ ? std::move(*early_) : http::error_response(400, "INVALID_REQUEST"));
}

void HttpConnection::on_head() {
  ++env_.view.counters().http_requests_total;
  disarm();
  RouteResult result = find_route(parser_.request());
  routed_ = std::move(result.routed);
  early_.reset();
  if (!routed_) {
    early_ = std::move(result.answer);
    return begin();
  }
  if (env_.view.starting() && !serves_while_opening(routed_->route)) {
    RQ_SOMETIMES(true, "http.request_while_opening");
    phase_ = Phase::parked;
    ++env_.parked;
    return arm(kOpeningWaitNs);
  }
  begin();
}

void HttpConnection::opened() {
  if (phase_ != Phase::parked) return;
  --env_.parked;
  disarm();
  begin();
  take_input();
}

// The head is there and the answer may be worked out: with the body, without one, or after dropping an unwanted one.
void HttpConnection::begin() {
  const http::Request& request = parser_.request();
  const bool complete = parser_.stage() == http::RequestParser::Stage::complete;
  if (routed_) {
    early_ = refusal();
    if (early_) routed_.reset();
  }
  if (routed_ && takes_body(routed_->route)) return begin_body();
  const bool droppable = !request.expect_continue && request.content_length.value_or(0) <= kDiscardBytesMax;
  if (!complete && droppable) {
    phase_ = Phase::discard;
    discard_.bytes = 0;
    return arm(static_cast<std::int64_t>(env_.view.config().limits.http_body_timeout_ms) * kMillisecond);
  }
  if (early_) return respond(std::move(*early_));
  act();
}

void HttpConnection::begin_body() {
  const http::Request& request = parser_.request();
  const Config& config = env_.view.config();
  const bool batch = routed_->route == Route::mpub;
  const bool json = is_json(routed_->route);
  const std::uint64_t publish_limit = batch ? config.limits.max_body_bytes : config.queue.max_message_bytes;
  const std::uint64_t limit = json                                  ? kJsonBodyBytesMax
                              : routed_->route == Route::config_put ? std::min(publish_limit, kConfigValueBytesMax)
                                                                    : publish_limit;
  if (request.content_length.value_or(0) > limit) return respond_closing(too_long());
  if (batch) {  // its Topic is looked at before its body is read (page 10 section 6.3)
    early_ = mpub_topic_refusal(routed_->target.query);
    if (early_) {
      routed_.reset();
      return begin();
    }
  }
  if (is_publish(routed_->route) && !charge_body(request.content_length.value_or(0))) return;
  body_ = http::BodyBuffer(static_cast<std::uint32_t>(limit), request.content_length);
  if (parser_.stage() == http::RequestParser::Stage::complete) return act();
  phase_ = Phase::body;
  if (request.expect_continue) queue_bytes("HTTP/1.1 100 Continue\r\n\r\n");
  arm(static_cast<std::int64_t>(config.limits.http_body_timeout_ms) * kMillisecond);
}

http::Response HttpConnection::too_long() const {
  if (is_json(routed_->route)) return json_body_too_long();
  if (routed_->route == Route::config_put) return http::error_response(413, "INVALID_VALUE");
  return body_too_long(routed_->route == Route::mpub);
}

// The node's budget (page 30 section 2.3) for a publish of so many bytes: takes what is not held yet. False: it was refused.
bool HttpConnection::charge_body(std::uint64_t bytes) {
  const bool batch = routed_->route == Route::mpub;
  // A batch of n bytes holds at most n / 2 lines, or (n - 4) / 5 messages in binary form.
  const std::uint64_t charge =
      publish_charge(bytes, batch ? std::min<std::uint64_t>(storage::kBatchMessagesMax, bytes / 2 + 1) : 1);
  if (charge <= charge_) return true;
  if (env_.view.reserve_publish_bytes(charge - charge_)) {
    charge_ = charge;
    return true;
  }
  RQ_SOMETIMES(true, "http.publish_throttled");
  BrokerCounters& counters = env_.view.counters();
  ++counters.publish_throttled_requests;
  counters.publish_throttled_bytes += charge;
  respond(http::error_response(429, "E_THROTTLED", env_.view.disk_pressure() ? "disk pressure" : "publish budget"));
  return false;
}

void HttpConnection::release_charge() {
  if (charge_ > 0) env_.view.release_publish_bytes(charge_);
  charge_ = 0;
}

// --- output

void HttpConnection::respond_closing(http::Response response) {
  response.close = true;
  respond(std::move(response));
}

void HttpConnection::respond(http::Response response) {
  disarm();
  release_charge();
  forget_waiter();
  body_ = {};
  early_.reset();
  const bool complete = parser_.stage() == http::RequestParser::Stage::complete;
  const bool known = complete || parser_.stage() == http::RequestParser::Stage::body;
  http::ResponseFraming framing;
  framing.version = known ? parser_.request().version : 11;
  framing.keep_alive = complete && parser_.request().keep_alive && !env_.closing;
  framing.date = env_.date;
  framing.head = known && parser_.request().method == "HEAD";
  if (known) allow_origin(response, parser_.request(), env_.view.config().websocket.allowed_origins);
  close_after_ = response.close || !framing.keep_alive;
  std::string bytes;
  http::write_response(bytes, response, framing);
  phase_ = Phase::writing;
  RQ_CHECK(rest_.empty() || !framing.head);  // only GET is rendered
  const auto size = static_cast<std::int64_t>(bytes.size() + response.rest_bytes);
  write_until_ = env_.now.mono + kWriteTimeoutNs + size * kSecond / kWriteBytesPerSecondMin;
  queue_bytes(std::move(bytes));
  arm_write();
}

void HttpConnection::queue_bytes(std::string bytes) {
  env_.output_bytes += bytes.size();
  if (pending_.empty()) {
    pending_ = std::move(bytes);
  } else {
    pending_ += bytes;
  }
  flush();
}

void HttpConnection::drop_rest() {
  for (; rest_at_ < rest_.size(); ++rest_at_) env_.output_bytes -= rest_[rest_at_].size();
  rest_ = {};
  rest_at_ = 0;
}

void HttpConnection::flush() {
  if (write_.in_flight) return;
  if (sent_ == sending_.size()) {
    env_.output_bytes -= sending_.size();
    sent_ = 0;
    sending_.clear();
    if (sending_.capacity() > 4'096) std::string().swap(sending_);
    std::swap(sending_, pending_);
    if (sending_.empty() && phase_ == Phase::writing && rest_at_ < rest_.size()) sending_ = std::move(rest_[rest_at_++]);
    if (sending_.empty()) return;
  }
  const ConstBuf rest = bytes_of(sending_).subspan(sent_);
  env_.host.net.write_some(write_, stream_, std::span(&rest, 1));
}

// The answer is out. The next request, or the end.
void HttpConnection::written() {
  drop_rest();
  const bool rest = parser_.stage() != http::RequestParser::Stage::complete || !input_.empty();
  routed_.reset();
  const bool stopping = env_.closing && input_.empty();  // since the answer was made
  if (!close_after_ && !stopping) {
    parser_.reset();
    served_ = true;
    phase_ = Phase::head;
    return arm(kIdleTimeoutNs);
  }
  if (!rest || peer_done_) return close();
  // Bytes that nobody reads would turn the close into a reset, which may overtake the answer.
  RQ_SOMETIMES(true, "http.lingering_close");
  phase_ = Phase::linger;
  env_.host.net.shutdown_write(stream_);
  arm(kLingerNs);
}

// --- the end

void HttpConnection::stop() {
  const bool idle = phase_ == Phase::head && !parser_.started() && input_.empty();
  if (idle || phase_ == Phase::linger) close();
}

void HttpConnection::close() {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::parked) --env_.parked;
  phase_ = Phase::closed;
  disarm();
  release_charge();
  forget_waiter();
  end_rendering();
  drop_rest();
  env_.output_bytes -= sending_.size() + pending_.size();
  // Bytes of a write on its way stay until it was delivered.
  if (!write_.in_flight) sending_.clear();
  pending_.clear();
  sent_ = 0;
  input_ = Slice();
  body_ = {};
  parser_.reset();
  env_.host.net.close(stream_);
  mark_dirty();
}

}  // namespace rq::broker
