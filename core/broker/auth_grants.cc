#include "core/broker/auth_grants.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "core/broker/auth_document.h"

namespace rq::broker {

namespace {

constexpr std::uint64_t kEntryBytes = 4'096, kPatternBytes = 8'192;  // charged for what RE2 keeps beside its program

constexpr std::int64_t kTtlSecondsMax = INT64_MAX / 1'000'000'000;

// Whether it has a \C, which RE2 takes and the expressions of nsqd do not.
bool names_one_byte(std::string_view pattern) {
  for (std::size_t at = pattern.find('\\'); at < pattern.size() - 1; at = pattern.find('\\', at)) {
    const char kind = pattern[at + 1];
    if (kind == 'C') return true;
    at = kind == 'Q' ? pattern.find("\\E", at) : at + 2;
  }
  return false;
}

}  // namespace

AuthGrants::AuthGrants() = default;
AuthGrants::~AuthGrants() = default;

AuthGrants::Ref::~Ref() {
  if (grants_ != nullptr && --grants_->refs_ == 0) delete grants_;
}

// Compiles the document; the first thing that is wrong stays in `wrong`.
struct AuthGrants::Compiler {
  AuthGrants& out;
  std::size_t pattern_bytes = 0;
  std::string wrong;

  bool fail(std::string_view what) {
    wrong = what;
    return false;
  }

  bool pattern(const std::string& source, std::unique_ptr<re2::RE2>& to) {
    pattern_bytes += source.size();
    if (source.size() > kPatternBytesMax || pattern_bytes > kPatternBytesTotalMax) return fail("patterns are too long");
    re2::RE2::Options options;
    options.set_max_mem(kAutomatonBytesMax);
    options.set_log_errors(false);
    to = std::make_unique<re2::RE2>(source, options);
    if (!to->ok() || names_one_byte(source)) return fail("a pattern does not compile");
    out.memory_bytes_ += kPatternBytes + source.size() + 16 * static_cast<std::uint64_t>(std::max(0, to->ProgramSize()));
    return true;
  }

  bool entry(const AuthDocument::Entry& from) {
    if (from.unknown_permission) return fail("an unknown permission");
    Entry& entry = out.entries_.emplace_back();
    entry.subscribe = from.subscribe;
    entry.publish = from.publish;
    if (!pattern(from.topic, entry.topic)) return false;
    for (const std::string& each : from.channels) {
      if (!pattern(each, entry.channels.emplace_back())) return false;
    }
    return true;
  }

  bool document(AuthDocument from) {
    if (from.ttl_seconds <= 0) return fail("ttl is not above 0");
    out.ttl_seconds_ = std::min(from.ttl_seconds, kTtlSecondsMax);
    out.identity_ = std::move(from.identity);
    out.identity_url_ = std::move(from.identity_url);
    out.memory_bytes_ += kEntryBytes + out.identity_.size() + out.identity_url_.size();
    for (const AuthDocument::Entry& each : from.entries) {
      if (!entry(each)) return false;
    }
    return true;
  }
};

tl::expected<AuthGrants::Ref, std::string> AuthGrants::parse(std::string_view text) {
  auto document = decode_auth_document(text);
  if (!document) return tl::unexpected(std::move(document.error()));
  Ref grants(new AuthGrants);
  Compiler compiler{*grants.grants_, 0, {}};
  if (!compiler.document(std::move(*document))) return tl::unexpected(std::move(compiler.wrong));
  return grants;
}

bool AuthGrants::allows(Permission permission, std::string_view topic, std::string_view channel) const {
  const re2::StringPiece topic_text(topic.data(), topic.size()), channel_text(channel.data(), channel.size());
  for (const Entry& entry : entries_) {
    if (!(permission == Permission::publish ? entry.publish : entry.subscribe)) continue;
    if (!re2::RE2::PartialMatch(topic_text, *entry.topic)) continue;
    for (const auto& pattern : entry.channels) {
      if (re2::RE2::PartialMatch(channel_text, *pattern)) return true;
    }
  }
  return false;
}

}  // namespace rq::broker
