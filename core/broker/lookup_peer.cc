#include "core/broker/lookup_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/text.h"
#include "core/storage/json_reader.h"

namespace rq::broker {

bool is_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon > kHostBytesMax) return false;
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (!bracketed && host.find_first_of(":[]") != std::string_view::npos) return false;
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '/' && c != '"'; };
  if (!std::all_of(host.begin(), host.end(), plain)) return false;
  const auto port = parse_decimal(text.substr(colon + 1));
  return port && *port >= 1 && *port <= 65'535;
}

namespace {

constexpr std::string_view kMagic = "  V1";
constexpr std::size_t kShownMax = 100;  // bytes of an unexpected answer in a log line

}  // namespace

LookupPeer::LookupPeer(io::Host& host, ChunkPool& pool, std::string address, std::string identity)
    : host_(host),
      pool_(pool),
      address_(std::move(address)),
      identity_(std::move(identity)),
      random_(host.random.split("nsqlookupd " + address_)) {
  io::bind<&LookupPeer::on_op>(op_, this);
  io::bind<&LookupPeer::on_read>(read_, this);
}

bool LookupPeer::ask(const std::vector<std::string>& topics) {
  if (to_ask_.size() + topics.size() > kToAskMax) return false;
  to_ask_.insert(to_ask_.end(), topics.begin(), topics.end());
  return true;
}

std::string LookupPeer::take_question() {
  std::string topic = std::move(to_ask_.front());
  to_ask_.pop_front();
  return topic;
}

void LookupPeer::send(const LookupNames::Commands& commands) {
  if (step_ != Step::registered) return;  // a walk is to come
  if (waiting_.size() + commands.size() > kWaitingMax) return lose("too many changes wait");
  waiting_.insert(waiting_.end(), commands.begin(), commands.end());
}

void LookupPeer::settle(Now now, const LookupNames& names) {
  if (step_ == Step::ended) return;
  if (std::exchange(lost_, false)) {
    retry_at_ = now.mono + retry_ns_ + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(retry_ns_) / 4));
    retry_ns_ = std::min(2 * retry_ns_, kRetryNsMax);
  }
  if (step_ == Step::waiting) {
    if (now.mono < retry_at_ || op_.in_flight || read_.in_flight) return;
    step_ = Step::connecting;
    connect_op_ = true;
    limit_ = now.mono + kLimitNs;
    host_.net.connect(op_, address_, limit_);
    return;
  }
  if (step_ == Step::connecting) return;
  if (output_done_ == output_.size() && unanswered_ == 0) fill(now, names);
  if (std::exchange(moved_, false)) limit_ = now.mono + kLimitNs;
  if (output_done_ == output_.size() && unanswered_ == 0) limit_ = Instant::never();
  if (!op_.in_flight && output_done_ < output_.size()) {
    const ConstBuf rest = bytes_of(output_).subspan(output_done_);
    host_.net.write_some(op_, stream_, std::span(&rest, 1));
  }
  if (!read_.in_flight) host_.net.read_some(read_, stream_, pool_);
}

// The next commands, when all before them are answered.
void LookupPeer::fill(Now now, const LookupNames& names) {
  output_.clear();
  output_done_ = 0;
  if (step_ == Step::greeting) {
    output_ = kMagic;
    output_ += "IDENTIFY\n";
    put32(output_, static_cast<std::uint32_t>(identity_.size()));
    output_ += identity_;
    unanswered_ = 1;
    ping_at_ = now.mono + kPingNs;
    moved_ = true;
    return;
  }
  std::string line;
  while (!walked_ && unanswered_ < kBatch) {
    if (names.next(walk_, line)) {
      output_ += line;
      ++unanswered_;
      continue;
    }
    if (unanswered_ > 0) break;  // the end counts once everything is answered
    walked_ = true;
    retry_ns_ = kRetryNsMin;
    host_.log.log(io::Level::info, "nsqlookupd_registered", fmt::format("address=\"{}\" names={}", address_, names.count()));
  }
  for (; walked_ && unanswered_ < kBatch && !waiting_.empty(); ++unanswered_) {
    output_ += waiting_.front();
    waiting_.pop_front();
  }
  if (now.mono >= ping_at_) {
    output_ += "PING\n";
    ++unanswered_;
    ping_at_ = now.mono + kPingNs;
  }
  moved_ = unanswered_ > 0;
}

void LookupPeer::on_op(io::Op& op) {
  if (std::exchange(connect_op_, false) && !op.error) {
    stream_ = op.stream();
    if (step_ != Step::connecting) return close();  // given up meanwhile
    step_ = Step::greeting;
    return;
  }
  if (step_ == Step::waiting || step_ == Step::ended) return;
  if (op.error) return lose(io::errc_name(op.error.code));
  output_done_ += op.value;
  moved_ = true;
}

void LookupPeer::on_read(io::ReadOp& op) {
  const Slice data = std::move(op.data);
  if (step_ != Step::greeting && step_ != Step::registered) return;
  if (op.error) return lose(io::errc_name(op.error.code));
  input_.append(text_of(data.bytes()));
  take_answers();
}

void LookupPeer::take_answers() {
  std::size_t at = 0;
  while (input_.size() - at >= 4) {
    const std::uint32_t size = load32(bytes_of(input_).data() + at);
    if (unanswered_ == 0) return lose("an answer that was not asked for");
    if (size > kAnswerBytesMax) return lose(fmt::format("an answer of {} bytes", size));
    if (input_.size() - at - 4 < size) break;
    if (!take_answer(std::string_view(input_).substr(at + 4, size))) return;
    at += 4 + size;
  }
  if (unanswered_ == 0 && at < input_.size()) return lose("an answer that was not asked for");
  input_.erase(0, at);
}

// False: the connection was given up.
bool LookupPeer::take_answer(std::string_view answer) {
  const bool good = step_ == Step::greeting ? take_identity(answer) : answer == "OK";
  if (!good) {
    std::string shown(answer.substr(0, kShownMax));
    for (char& c : shown)
      if (c < ' ' || c > '~' || c == '"') c = '?';
    lose("answered " + shown);
    return false;
  }
  step_ = Step::registered;
  --unanswered_;
  moved_ = true;
  return true;
}

// What a server says about itself: an object, whatever else is in it.
bool LookupPeer::take_identity(std::string_view answer) {
  std::string host;
  std::uint64_t port = 0;
  storage::JsonText host_field(host);
  storage::JsonUnsigned port_field(port, 65'535);
  storage::JsonObject object;
  object.add("broadcast_address", host_field, storage::JsonObject::Need::optional);
  object.add("http_port", port_field, storage::JsonObject::Need::optional);
  if (storage::read_json(bytes_of(answer), object)) return false;
  if (host.find(':') != std::string::npos && !host.starts_with('[')) host = "[" + host + "]";
  host += ":" + std::to_string(port);
  http_address_ = is_host_port(host) ? host : std::string();
  return true;
}

void LookupPeer::lose(std::string_view why) {
  host_.log.log(io::Level::warn, "nsqlookupd_lost", fmt::format("address=\"{}\" reason=\"{}\"", address_, why));
  close();
  step_ = Step::waiting;
  lost_ = true;
}

void LookupPeer::close() {
  if (stream_ != io::StreamId::none) host_.net.close(std::exchange(stream_, io::StreamId::none));
  output_done_ = output_.size();  // kept: a write may still be in flight
  input_.clear();
  waiting_.clear();
  unanswered_ = 0;
  walk_ = {};
  walked_ = moved_ = false;
  limit_ = Instant::never();
}

void LookupPeer::expire(Now now) {
  if (step_ != Step::waiting && now.mono >= limit_) lose("timed out");
}

Instant LookupPeer::next_deadline() const {
  switch (step_) {
    case Step::waiting:
      return lost_ || op_.in_flight || read_.in_flight ? Instant::never() : retry_at_;
    case Step::registered:
      return unanswered_ > 0 ? limit_ : std::min(limit_, ping_at_);
    case Step::connecting:
    case Step::greeting:
      return limit_;
    case Step::ended:
      break;
  }
  return Instant::never();
}

void LookupPeer::end() {
  close();
  step_ = Step::ended;
}

}  // namespace rq::broker
