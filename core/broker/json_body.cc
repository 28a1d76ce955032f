#include "core/broker/json_body.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/storage/json_reader.h"

namespace rq::broker {
namespace {

using storage::JsonObject;
using storage::JsonTarget;
using Need = JsonObject::Need;

// Takes any value: what is left is the syntax.
class Anything final : public JsonTarget {
 public:
  const char* on_null() override { return nullptr; }
  const char* on_bool(bool) override { return nullptr; }
  const char* on_unsigned(std::uint64_t) override { return nullptr; }
  const char* on_negative(std::int64_t) override { return nullptr; }
  const char* on_text(std::string_view) override { return nullptr; }
  const char* on_object_begin() override { return nullptr; }
  const char* on_key(std::string_view, JsonTarget*&) override { return nullptr; }
  const char* on_array_begin() override { return nullptr; }
};

class Flag final : public JsonTarget {
 public:
  explicit Flag(bool& out) : out_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_bool(bool value) override {
    out_ = value;
    return nullptr;
  }

 private:
  bool& out_;
};

class Text final : public JsonTarget {
 public:
  explicit Text(std::optional<std::string>& out) : out_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_text(std::string_view value) override {
    out_ = value;
    return nullptr;
  }

 private:
  std::optional<std::string>& out_;
};

class Signed final : public JsonTarget {
 public:
  explicit Signed(std::optional<std::int64_t>& out) : out_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_unsigned(std::uint64_t value) override {
    if (value > INT64_MAX) return kRange;
    out_ = static_cast<std::int64_t>(value);
    return nullptr;
  }
  const char* on_negative(std::int64_t value) override {
    out_ = value;
    return nullptr;
  }

 private:
  std::optional<std::int64_t>& out_;
};

http::Response bad_body(int status, std::string_view detail) { return http::error_response(status, "E_BAD_BODY", detail); }

bool is_json(std::string_view content_type) {
  std::string_view written = content_type.substr(0, content_type.find(';'));
  while (!written.empty() && (written.back() == ' ' || written.back() == '\t')) written.remove_suffix(1);
  const std::string type = lower(written);
  return type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"));
}

// Null, or the refusal.
std::optional<http::Response> read_body(std::string_view content_type, ConstBuf body, JsonTarget& document) {
  if (!is_json(content_type)) return bad_body(415, "Content-Type must be application/json");
  Anything anything;
  if (const auto defect = storage::read_json(body, anything)) return bad_body(400, *defect);
  if (const auto defect = storage::read_json(body, document)) return bad_body(422, *defect);
  return std::nullopt;
}

std::optional<queue::ManagedAction> action_of(bool on_channel, std::string_view text) {
  using queue::ManagedAction;
  constexpr std::pair<std::string_view, ManagedAction> kActions[] = {
      {"create", ManagedAction::create},       {"configure", ManagedAction::configure}, {"pause", ManagedAction::pause},
      {"unpause", ManagedAction::unpause},     {"empty", ManagedAction::empty},         {"delete", ManagedAction::remove},
      {"tombstone", ManagedAction::tombstone},
  };
  for (const auto& [name, action] : kActions)
    if (name == text && !(on_channel && action == ManagedAction::configure)) return action;
  return std::nullopt;
}

struct PolicyFields {
  std::optional<std::string> mode, mode_alias;
  std::optional<std::uint64_t> ttl, ttl_alias;
};

// What is incomplete or does not fit together becomes a policy that is not valid(): the Engine refuses it behind the names.
// False: no such mode.
bool take_policy(const PolicyFields& fields, std::optional<queue::DeliveryPolicy>& out) {
  const std::optional<std::string>& mode = fields.mode ? fields.mode : fields.mode_alias;
  const std::optional<std::uint64_t> ttl = fields.ttl ? fields.ttl : fields.ttl_alias;
  if (mode && *mode != "RELIABLE" && *mode != "TTL_DISCARD") return false;
  const bool discard = mode && *mode == "TTL_DISCARD";
  if (discard) {
    out = queue::DeliveryPolicy{true, ttl.value_or(0)};
  } else if (ttl) {
    out = queue::DeliveryPolicy{false, std::max<std::uint64_t>(*ttl, 1)};
  } else if (mode) {
    out = queue::DeliveryPolicy{};
  }
  return true;
}

class Deadlines final : public JsonTarget {
 public:
  explicit Deadlines(std::vector<std::pair<std::string, std::int64_t>>& out) : member_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_object_begin() override { return nullptr; }
  const char* on_key(std::string_view key, JsonTarget*& target) override {
    member_.key = key;
    target = &member_;
    return nullptr;
  }

 private:
  struct Member final : JsonTarget {
    explicit Member(std::vector<std::pair<std::string, std::int64_t>>& values) : out(values) {}
    const char* on_unsigned(std::uint64_t value) override {
      if (value > INT64_MAX) return kRange;
      out.emplace_back(key, static_cast<std::int64_t>(value));
      return nullptr;
    }
    const char* on_negative(std::int64_t value) override {
      out.emplace_back(key, value);
      return nullptr;
    }
    std::vector<std::pair<std::string, std::int64_t>>& out;
    std::string key;
  };
  Member member_;
};

class ChannelFences final : public JsonTarget {
 public:
  explicit ChannelFences(std::vector<queue::FenceSnapshot::Channel>& out) : element_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_array_begin() override { return nullptr; }
  JsonTarget* element() override { return &element_; }

 private:
  struct Element final : JsonObject {
    explicit Element(std::vector<queue::FenceSnapshot::Channel>& values) : out(values) {
      add("topic", topic_target);
      add("channel", channel_target);
      add("until_ms", until_target);
    }
    const char* on_object_begin() override {
      until.reset();
      return JsonObject::on_object_begin();
    }
    const char* on_object_end() override {
      if (const char* wrong = JsonObject::on_object_end()) return wrong;
      if (!until) return kType;
      out.push_back({topic, channel, *until});
      return nullptr;
    }
    std::vector<queue::FenceSnapshot::Channel>& out;
    std::string topic, channel;
    std::optional<std::int64_t> until;
    storage::JsonText topic_target{topic}, channel_target{channel};
    Signed until_target{until};
  };
  Element element_;
};

}  // namespace

http::Response json_body_too_long() { return bad_body(413, "at most 2 MiB"); }

JsonBody<DrainRequest> parse_drain(std::string_view content_type, ConstBuf body) {
  JsonBody<DrainRequest> out;
  Flag enabled(out.value.enabled), freeze(out.value.freeze_deliveries);
  JsonObject document;
  document.add("enabled", enabled, Need::optional);
  document.add("freeze_deliveries", freeze, Need::optional);
  out.refusal = read_body(content_type, body, document);
  return out;
}

JsonBody<queue::ManagedRequest> parse_managed(bool on_channel, std::string_view action, std::string_view content_type,
                                              ConstBuf body) {
  JsonBody<queue::ManagedRequest> out;
  const std::optional<queue::ManagedAction> known = action_of(on_channel, action);
  if (!known) {
    out.refusal = http::error_response(400, "E_BAD_ACTION");
    return out;
  }
  queue::ManagedRequest& request = out.value;
  request.action = *known;
  request.on_channel = on_channel;
  PolicyFields policy;
  storage::JsonText id(request.operation_id), topic(request.topic), channel(request.channel);
  storage::JsonUnsigned revision(request.expected_revision);
  Signed deadline(request.tombstone_until_ms);
  Text mode(policy.mode), mode_alias(policy.mode_alias);
  storage::JsonOptionalUnsigned ttl(policy.ttl), ttl_alias(policy.ttl_alias);
  JsonObject document;
  document.add("operation_id", id);
  document.add("topic", topic);
  if (on_channel) document.add("channel", channel);
  document.add("expected_revision", revision);
  document.add("tombstone_until_ms", deadline, Need::optional);
  document.add("delivery_mode", mode, Need::optional);
  document.add("deliveryMode", mode_alias, Need::optional);
  document.add("message_ttl_seconds", ttl, Need::optional);
  document.add("messageTtlSeconds", ttl_alias, Need::optional);
  out.refusal = read_body(content_type, body, document);
  if (!out.refusal && !take_policy(policy, request.policy)) out.refusal = bad_body(422, "delivery_mode: RELIABLE or TTL_DISCARD");
  return out;
}

JsonBody<queue::FenceSnapshot> parse_fences(std::string_view content_type, ConstBuf body) {
  JsonBody<queue::FenceSnapshot> out;
  std::optional<std::string> revision;
  Text revision_target(revision);
  Deadlines topics(out.value.topics);
  ChannelFences channels(out.value.channels);
  JsonObject document;
  document.add("revision", revision_target, Need::optional);
  document.add("topics", topics, Need::optional);
  document.add("channels", channels, Need::optional);
  out.refusal = read_body(content_type, body, document);
  out.value.revision = revision.value_or("");
  return out;
}

}  // namespace rq::broker
