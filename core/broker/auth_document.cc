#include "core/broker/auth_document.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/nsq/identify.h"
#include "core/nsq/json_text.h"
#include "core/nsq/quote.h"

namespace rq::broker {

namespace json = boost::json;

namespace {

constexpr std::size_t kTextBytesLeast = 4'096;  // invalid bytes become three each; more than this only as far as it came

enum class Slot : std::uint8_t {
  unknown,
  document,
  ttl,
  identity,
  identity_url,
  entries,
  entry,
  topic,
  channels,
  channel,
  permissions,
  permission
};

constexpr std::array<std::pair<std::string_view, Slot>, 4> kDocumentKeys = {
    {{"ttl", Slot::ttl}, {"identity", Slot::identity}, {"identity_url", Slot::identity_url}, {"authorizations", Slot::entries}}};
constexpr std::array<std::pair<std::string_view, Slot>, 3> kEntryKeys = {
    {{"topic", Slot::topic}, {"channels", Slot::channels}, {"permissions", Slot::permissions}}};

template <typename Keys>
Slot slot_of(const Keys& keys, std::string_view key) {
  for (const auto& [known, slot] : keys) {
    if (nsq::same_json_key(known, key)) return slot;
  }
  return Slot::unknown;
}

// A value goes to the slot that its container and, in an object, its key name; everything under an unknown key is skipped.
struct Handler {
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  AuthDocument out;
  std::string wrong;  // the first thing that is; the rest is read for its syntax
  std::array<Slot, nsq::kJsonDepthMax + 1> open{};
  std::size_t depth = 0;
  Slot next = Slot::document;  // where the next value goes, in an object
  std::string key, text;
  std::size_t patterns = 0;

  Slot slot() const {
    switch (depth == 0 ? Slot::unknown : open[depth - 1]) {
      case Slot::entries:
        return Slot::entry;
      case Slot::channels:
        return Slot::channel;
      case Slot::permissions:
        return Slot::permission;
      default:
        return next;
    }
  }
  AuthDocument::Entry& entry() { return out.entries.back(); }

  bool fail(std::string_view what) {
    if (wrong.empty()) wrong = what;
    return true;
  }
  bool wrong_type(Slot at) { return at == Slot::unknown ? true : fail("a value is of a wrong type"); }

  void clear_channels() {
    patterns -= entry().channels.size();
    entry().channels.clear();
  }
  void clear_permissions() { entry().subscribe = entry().publish = entry().unknown_permission = false; }
  void clear_entries() {
    patterns = 0;
    out.entries.clear();
  }
  void add_entry() {
    if (out.entries.size() == AuthDocument::kEntriesMax) {
      fail("more than 256 authorizations");
      return;
    }
    out.entries.emplace_back();
    count_pattern();
  }
  void count_pattern() {
    if (++patterns > AuthDocument::kPatternsMax) fail("more than 256 patterns");
  }
  void add_permission(std::string_view word) {
    if (word == "publish") {
      entry().publish = true;
    } else if (word == "subscribe") {
      entry().subscribe = true;
    } else {
      entry().unknown_permission = true;
    }
  }
  void add_channel(std::string pattern) {
    count_pattern();
    if (wrong.empty()) entry().channels.push_back(std::move(pattern));
  }

  void enter(Slot at) {
    RQ_CHECK(depth < open.size());
    open[depth++] = at;
    next = Slot::unknown;
  }
  void leave() {
    --depth;
    next = Slot::unknown;
  }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    const Slot at = wrong.empty() ? slot() : Slot::unknown;
    const bool wanted = at == Slot::document || at == Slot::entry;
    if (at == Slot::entry) add_entry();
    if (!wanted) wrong_type(at);
    enter(wanted ? at : Slot::unknown);
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) {
    leave();
    return true;
  }
  bool on_array_begin(json::error_code&) {
    const Slot at = wrong.empty() ? slot() : Slot::unknown;
    const bool wanted = at == Slot::entries || at == Slot::channels || at == Slot::permissions;
    if (at == Slot::entries) clear_entries();
    if (at == Slot::channels) clear_channels();
    if (at == Slot::permissions) clear_permissions();
    if (!wanted) wrong_type(at);
    enter(wanted ? at : Slot::unknown);
    return true;
  }
  bool on_array_end(std::size_t, json::error_code&) {
    leave();
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    if (key.size() <= nsq::kJsonKeyBytesMax) key.append(part.substr(0, nsq::kJsonKeyBytesMax + 1));
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& error) {
    on_key_part(part, 0, error);
    const Slot in = open[depth - 1];
    next = in == Slot::document ? slot_of(kDocumentKeys, key) : in == Slot::entry ? slot_of(kEntryKeys, key) : Slot::unknown;
    key.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    if (wrong.empty() && slot() != Slot::unknown) text.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& error) {
    on_string_part(part, 0, error);
    if (wrong.empty()) take_text(slot(), nsq::clean_utf8(text, std::max(text.size(), kTextBytesLeast)));
    text.clear();
    return true;
  }
  void take_text(Slot at, std::string value) {
    switch (at) {
      case Slot::identity:
        out.identity = std::move(value);
        break;
      case Slot::identity_url:
        out.identity_url = std::move(value);
        break;
      case Slot::topic:
        entry().topic = std::move(value);
        break;
      case Slot::channel:
        add_channel(std::move(value));
        break;
      case Slot::permission:
        add_permission(value);
        break;
      default:
        wrong_type(at);
    }
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    if (!wrong.empty() || slot() != Slot::ttl) return other();
    out.ttl_seconds = value;
    return true;
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code&) { return other(); }  // beyond int64
  bool on_double(double, json::string_view, json::error_code&) { return other(); }         // 60.0, 6e1
  bool on_bool(bool, json::error_code&) { return other(); }
  bool other() { return wrong_type(wrong.empty() ? slot() : Slot::unknown); }
  bool on_null(json::error_code&) {
    if (!wrong.empty()) return true;
    const Slot at = slot();
    if (at == Slot::entries) clear_entries();
    if (at == Slot::entry) add_entry();
    if (at == Slot::channels) clear_channels();
    if (at == Slot::channel) add_channel({});
    if (at == Slot::permissions) clear_permissions();
    if (at == Slot::permission) add_permission({});
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

}  // namespace

tl::expected<AuthDocument, std::string> decode_auth_document(std::string_view text) {
  json::parse_options options;
  options.max_depth = nsq::kJsonDepthMax;
  options.allow_invalid_utf8 = true;  // replaced where it is kept
  json::basic_parser<Handler> parser(options);
  json::error_code error;
  std::string storage;
  text = nsq::whole_pairs(text, storage);
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error || text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    return tl::unexpected(std::string("no JSON"));
  }
  Handler& handler = parser.handler();
  if (!handler.wrong.empty()) return tl::unexpected(std::move(handler.wrong));
  return std::move(handler.out);
}

}  // namespace rq::broker
