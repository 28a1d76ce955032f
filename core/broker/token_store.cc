#include "core/broker/token_store.h"

#include "core/base/check.h"
#include "core/base/text.h"

namespace rq::broker {

std::string_view presented_token(std::string_view authorization, std::string_view header) {
  constexpr std::string_view kBearer = "Bearer ";
  return authorization.starts_with(kBearer) ? authorization.substr(kBearer.size()) : header;
}

bool same_token(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

TokenStore::TokenStore(io::Host& host, const Config::Security& security) : host_(host) {
  io::bind<&TokenStore::on_step>(op_, this);
  sources_[kPublish] = {"publish", security.publish_token_file, {}, false};
  sources_[kAdmin] = {"admin", security.admin_token_file, {}, false};
  sources_[kRegistry] = {"registry", security.registry_token_file, {}, false};
  sources_[kConsole] = {"console", security.console_token_file, {}, false};
}

void TokenStore::settle(Now now) {
  if (!begun_ || reading_ || now.mono < next_at_) return;
  next_at_ = now.mono + kPeriodNs;
  at_ = 0;
  reading_ = true;
  go_on();
}

// The next file that is configured, or the end of the round.
void TokenStore::go_on() {
  while (at_ < sources_.size() && !sources_[at_].path) ++at_;
  if (at_ == sources_.size()) {
    reading_ = false;
    ++rounds_;
    return;
  }
  file_.begin(*sources_[at_].path, kTokenBytesMax);
  RQ_CHECK(!file_.poll({host_.disk, op_}));
}

void TokenStore::on_step(io::Op&) {
  if (!file_.poll({host_.disk, op_})) return;
  take();
  ++at_;
  go_on();
}

void TokenStore::take() {
  Source& source = sources_[at_];
  const bool read = file_.result() == storage::FileRead::Result::ok;
  const std::string_view token = read ? trimmed(file_.content(), " \t\r\n\v\f") : std::string_view();
  const bool was = source.available;
  source.available = !token.empty();
  if (source.available) {
    if (rounds_ > 0 && io::planted(host_, "keep_the_old_token")) return;
    if (rounds_ > 0 && (!was || source.token != token))
      host_.log.log(io::Level::info, "token_reloaded", std::string("scope=").append(source.scope));
    source.token = token;
    return;
  }
  if (rounds_ == 0 && failure_.empty()) failure_ = "token file " + *source.path + " cannot be read or is empty";
  if (was)
    host_.log.log(io::Level::warn, "token_unavailable",
                  std::string("scope=").append(source.scope) + " file=\"" + *source.path + '"');
}

TokenStore::Verdict TokenStore::compare(const Source& source, std::string_view token) const {
  if (!source.available) return Verdict::unavailable;
  return same_token(source.token, token) ? Verdict::ok : Verdict::unauthorized;
}

TokenStore::Verdict TokenStore::check(TokenClass wanted, std::string_view authorization, std::string_view header) const {
  const std::string_view token = presented_token(authorization, header);
  const auto one = [&](std::size_t which) { return sources_[which].path ? compare(sources_[which], token) : Verdict::ok; };
  switch (wanted) {
    case TokenClass::none:
      return Verdict::ok;
    case TokenClass::publish:
      return one(kPublish);
    case TokenClass::admin:
      return one(kAdmin);
    case TokenClass::console:
      return one(kConsole);
    case TokenClass::registry_or_console:
      break;
  }
  bool configured = false, matched = false;
  for (const std::size_t which : {std::size_t{kRegistry}, std::size_t{kConsole}}) {
    if (!sources_[which].path) continue;
    configured = true;
    const Verdict verdict = compare(sources_[which], token);
    if (verdict == Verdict::unavailable) return verdict;
    matched = matched || verdict == Verdict::ok;
  }
  return !configured || matched ? Verdict::ok : Verdict::unauthorized;
}

}  // namespace rq::broker
