#include "core/broker/auth_service.h"

#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace rq::broker {

AuthLease& AuthLease::operator=(AuthLease&& other) noexcept {
  if (this == &other) return *this;
  reset();
  memory_ = std::exchange(other.memory_, nullptr);
  grants_ = std::exchange(other.grants_, AuthGrants::Ref());
  expires_ = other.expires_;
  charge_ = std::exchange(other.charge_, 0);
  return *this;
}

void AuthLease::reset() {
  if (memory_ != nullptr) memory_->give(charge_);
  memory_ = nullptr;
  grants_ = AuthGrants::Ref();
}

AuthService::AuthService(io::Host& host, const Config& config, ChunkPool& pool)
    : host_(host), config_(config), pool_(pool), memory_(config.limits.auth_memory_bytes) {}

AuthService::~AuthService() = default;

AuthService::Key AuthService::key_of(const AuthQuestion& question) {
  std::string text;
  for (const std::string_view part : {std::string_view(question.remote_ip), std::string_view(question.tls ? "true" : "false"),
                                      std::string_view(question.common_name), std::string_view(question.secret)}) {
    put64(text, part.size());
    text += part;
  }
  Key key;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data());
  return key;
}

void AuthService::drop_oldest() {
  const auto oldest = oldest_.begin();
  cache_.erase(oldest->second);
  oldest_.erase(oldest);
}

bool AuthService::reserve(std::uint64_t bytes) {
  while (!memory_.take(bytes)) {
    if (cache_.empty()) return false;
    drop_oldest();
  }
  return true;
}

AuthLease AuthService::lease_of(const AuthGrants::Ref& grants, Instant expires) {
  const std::uint64_t charge = admission_units(grants->memory_bytes());
  if (!reserve(charge)) return {};
  return AuthLease(memory_, grants, expires, charge);
}

void AuthService::ask(std::uint32_t slot, AuthQuestion question, Now now) {
  const Key key = key_of(question);
  const auto found = cache_.find(key);
  if (found != cache_.end() && found->second.lease.expires() > now.mono) {
    const AuthGrants::Ref grants = found->second.grants;
    AuthLease lease = lease_of(grants, found->second.lease.expires());
    const AuthVerdict verdict = lease ? AuthVerdict::granted : AuthVerdict::overloaded;
    ready_.push_back({slot, verdict, std::move(lease)});
    return;
  }
  if (found != cache_.end()) {
    oldest_.erase(found->second.order);
    cache_.erase(found);
  }
  const std::uint64_t charge = admission_units(kAnswersCharged * config_.limits.auth_response_bytes);
  if (!reserve(charge)) {
    RQ_SOMETIMES(true, "broker.auth_memory_short");
    host_.log.log(io::Level::warn, "auth_overloaded", "");
    ready_.push_back({slot, AuthVerdict::overloaded, {}});
    return;
  }
  running_.push_back({slot, true, charge, key, std::make_unique<AuthQuery>(host_, config_, pool_, std::move(question))});
}

void AuthService::cancel(std::uint32_t slot) {
  for (Running& running : running_) {
    if (running.slot == slot) running.wanted = false;
  }
  std::erase_if(ready_, [&](const AuthAnswer& answer) { return answer.slot == slot; });
}

void AuthService::remember(const Key& key, const AuthGrants::Ref& grants, Instant expires) {
  const auto found = cache_.find(key);
  if (found != cache_.end()) {
    oldest_.erase(found->second.order);
    cache_.erase(found);
  }
  if (cache_.size() >= config_.limits.auth_cache_max_entries) drop_oldest();
  // Never at the expense of what is cached already.
  const std::uint64_t charge = admission_units(grants->memory_bytes());
  if (!memory_.take(charge)) return;
  const std::uint64_t order = next_order_++;
  cache_.emplace(key, Cached{AuthLease(memory_, grants, expires, charge), grants, order});
  oldest_.emplace(order, key);
}

AuthAnswer AuthService::finish(Running& running, Now now) {
  memory_.give(running.charge);
  AuthAnswer answer{running.slot, running.query->verdict(), {}};
  if (answer.verdict != AuthVerdict::granted) return answer;
  const AuthGrants::Ref& grants = running.query->grants();
  const auto most =
      static_cast<std::int64_t>(std::min<std::uint64_t>(config_.limits.auth_max_ttl_seconds, INT64_MAX / kSecond / 4));
  const Instant expires = now.mono + std::min(grants->ttl_seconds(), most) * kSecond;
  if (running.wanted) {
    answer.lease = lease_of(grants, expires);
    if (!answer.lease) answer.verdict = AuthVerdict::overloaded;
  }
  remember(running.key, grants, expires);
  return answer;
}

bool AuthService::has_answers() const {
  return !ready_.empty() || std::any_of(running_.begin(), running_.end(), [](const Running& each) { return each.query->over(); });
}

std::vector<AuthAnswer> AuthService::take_answers(Now now) {
  std::vector<AuthAnswer> out = std::exchange(ready_, {});
  for (Running& running : running_) {
    if (!running.query->over()) continue;
    AuthAnswer answer = finish(running, now);
    if (running.wanted) out.push_back(std::move(answer));
    running.query.reset();
  }
  std::erase_if(running_, [](const Running& running) { return running.query == nullptr; });
  return out;
}

void AuthService::settle(Now now) {
  for (Running& running : running_) running.query->settle(now);
}

void AuthService::expire(Now now) {
  for (Running& running : running_) running.query->expire(now);
}

Instant AuthService::next_deadline() const {
  Instant earliest = Instant::never();
  for (const Running& running : running_) earliest = std::min(earliest, running.query->next_deadline());
  return earliest;
}

}  // namespace rq::broker
