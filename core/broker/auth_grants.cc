#include "core/broker/auth_grants.h"

#include <re2/re2.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace rq::broker {

namespace json = boost::json;

namespace {

constexpr std::uint64_t kEntryBytes = 4'096, kPatternBytes = 8'192;  // charged for what RE2 keeps beside its program

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

}  // namespace

AuthGrants::AuthGrants() = default;
AuthGrants::~AuthGrants() = default;

AuthGrants::Ref::~Ref() {
  if (grants_ != nullptr && --grants_->refs_ == 0) delete grants_;
}

// Collects the document; the first thing that is wrong stays in `wrong`.
struct AuthGrants::Reader {
  AuthGrants& out;
  std::size_t patterns = 0, pattern_bytes = 0;
  std::string wrong;

  bool fail(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
    return false;
  }

  bool text(const json::object& object, std::string_view key, std::string& to) {
    const json::value* value = object.if_contains(json::string_view(key.data(), key.size()));
    if (value == nullptr || value->is_null()) return true;
    if (!value->is_string()) return fail(std::string(key) + " is no string");
    to = view(value->get_string());
    return true;
  }

  bool pattern(const json::value& value, std::unique_ptr<re2::RE2>& to) {
    if (!value.is_string()) return fail("a pattern is no string");
    const std::string_view source = view(value.get_string());
    pattern_bytes += source.size();
    if (++patterns > kPatternsMax) return fail("more than 256 patterns");
    if (source.size() > kPatternBytesMax || pattern_bytes > kPatternBytesTotalMax) return fail("patterns are too long");
    re2::RE2::Options options;
    options.set_max_mem(kAutomatonBytesMax);
    options.set_log_errors(false);
    to = std::make_unique<re2::RE2>(re2::StringPiece(source.data(), source.size()), options);
    if (!to->ok()) return fail("a pattern does not compile");
    out.memory_bytes_ += kPatternBytes + source.size() + 16 * static_cast<std::uint64_t>(std::max(0, to->ProgramSize()));
    return true;
  }

  bool permissions(const json::value* value, Entry& entry) {
    if (value == nullptr || value->is_null()) return true;
    if (!value->is_array()) return fail("permissions is no list");
    for (const json::value& each : value->get_array()) {
      const std::string_view word = each.is_string() ? view(each.get_string()) : std::string_view();
      if (word != "subscribe" && word != "publish") return fail("an unknown permission");
      (word == "publish" ? entry.publish : entry.subscribe) = true;
    }
    return true;
  }

  bool entry(const json::value& value) {
    if (!value.is_object()) return fail("an authorization is no object");
    const json::object& object = value.get_object();
    Entry entry;
    if (!permissions(object.if_contains("permissions"), entry)) return false;
    const json::value* topic = object.if_contains("topic");
    if (topic == nullptr) return fail("an authorization without topic");
    if (!pattern(*topic, entry.topic)) return false;
    const json::value* channels = object.if_contains("channels");
    if (channels != nullptr && !channels->is_null()) {
      if (!channels->is_array()) return fail("channels is no list");
      for (const json::value& each : channels->get_array()) {
        if (!pattern(each, entry.channels.emplace_back())) return false;
      }
    }
    out.entries_.push_back(std::move(entry));
    return true;
  }

  bool document(const json::value& value) {
    if (!value.is_object()) return fail("no object");
    const json::object& object = value.get_object();
    const json::value* ttl = object.if_contains("ttl");
    if (ttl == nullptr || !(ttl->is_int64() || ttl->is_uint64())) return fail("ttl is no integer");
    constexpr std::uint64_t kTtlMax = INT64_MAX / 1'000'000'000;
    const std::uint64_t seconds =
        ttl->is_uint64() ? ttl->get_uint64() : static_cast<std::uint64_t>(std::max<std::int64_t>(0, ttl->get_int64()));
    out.ttl_seconds_ = static_cast<std::int64_t>(std::min(seconds, kTtlMax));
    if (seconds == 0) return fail("ttl is not above 0");
    if (!text(object, "identity", out.identity_) || !text(object, "identity_url", out.identity_url_)) return false;
    out.memory_bytes_ += kEntryBytes + out.identity_.size() + out.identity_url_.size();
    const json::value* list = object.if_contains("authorizations");
    if (list == nullptr || list->is_null()) return true;
    if (!list->is_array()) return fail("authorizations is no list");
    if (list->get_array().size() > kEntriesMax) return fail("more than 256 authorizations");
    for (const json::value& each : list->get_array()) {
      if (!entry(each)) return false;
    }
    return true;
  }
};

tl::expected<AuthGrants::Ref, std::string> AuthGrants::parse(std::string_view text) {
  json::parse_options options;
  options.max_depth = 32;
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return tl::unexpected(std::string("no JSON"));
  Ref grants(new AuthGrants);
  Reader reader{*grants.grants_, 0, 0, {}};
  if (!reader.document(value)) return tl::unexpected(std::move(reader.wrong));
  return grants;
}

bool AuthGrants::empty() const {
  for (const Entry& entry : entries_) {
    if (entry.publish || entry.subscribe) return false;
  }
  return true;
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
