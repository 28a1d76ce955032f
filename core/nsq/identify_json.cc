// The decoder of IDENTIFY bodies: Boost.JSON's SAX parser, since a repeated key must be seen every time and integers are
// told from `1000.0` by how they are written (page 10 section 3.1).
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <optional>
#include <string>

#include "core/nsq/identify.h"
#include "core/nsq/json_text.h"
#include "core/nsq/quote.h"

namespace rq::nsq {
namespace {

namespace json = boost::json;

enum class Kind : std::uint8_t { text, flag, integer, int32 };
struct Field {
  std::string_view key;
  Kind kind;
  std::string Identify::*text = nullptr;
  bool Identify::*flag = nullptr;
  std::int64_t Identify::*integer = nullptr;
};
constexpr Field text_field(std::string_view key, std::string Identify::*at) { return {key, Kind::text, at, nullptr, nullptr}; }
constexpr Field flag_field(std::string_view key, bool Identify::*at) { return {key, Kind::flag, nullptr, at, nullptr}; }
constexpr Field integer_field(std::string_view key, std::int64_t Identify::*at) {
  return {key, Kind::integer, nullptr, nullptr, at};
}

constexpr std::array<Field, 13> kFields = {
    text_field("client_id", &Identify::client_id),
    text_field("hostname", &Identify::hostname),
    text_field("user_agent", &Identify::user_agent),
    flag_field("feature_negotiation", &Identify::feature_negotiation),
    integer_field("heartbeat_interval", &Identify::heartbeat_interval),
    integer_field("output_buffer_timeout", &Identify::output_buffer_timeout),
    integer_field("output_buffer_size", &Identify::output_buffer_size),
    Field{"sample_rate", Kind::int32},
    integer_field("msg_timeout", &Identify::msg_timeout),
    flag_field("tls_v1", &Identify::tls_v1),
    flag_field("snappy", &Identify::snappy),
    flag_field("deflate", &Identify::deflate),
    integer_field("deflate_level", &Identify::deflate_level),
};
// Values at depth 1 under a known key are fields; everything deeper or under other keys is skipped.
struct Handler {
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  Identify out;
  std::uint32_t depth = 0;
  const Field* field = nullptr;  // the key just read, when it is a known one of the outer object
  std::string key, text;
  bool failed = false;  // wrong type or range; the rest is still checked for syntax

  bool at_field() const { return depth == 1 && field != nullptr; }
  bool wrong_type() {
    if (at_field() || depth == 0) failed = true;
    return true;
  }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code&) {
    wrong_type();
    ++depth;
    return true;
  }
  bool on_array_end(std::size_t, json::error_code&) {
    --depth;
    return true;
  }
  bool on_object_begin(json::error_code&) {
    if (at_field()) failed = true;
    ++depth;
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) {
    --depth;
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    if (depth == 1 && key.size() <= kJsonKeyBytesMax) key.append(part.substr(0, kJsonKeyBytesMax + 1));
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& error) {
    if (depth != 1) return true;
    on_key_part(part, 0, error);
    field = nullptr;
    for (const Field& candidate : kFields) {
      if (same_json_key(candidate.key, key)) field = &candidate;
    }
    key.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    if (at_field() && text.size() <= kIdentifyTextBytesMax) text.append(part.substr(0, kIdentifyTextBytesMax + 1));
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& error) {
    on_string_part(part, 0, error);
    if (at_field() && field->kind == Kind::text) {
      out.*(field->text) = clean_utf8(text, kIdentifyTextBytesMax);
    } else {
      wrong_type();
    }
    text.clear();
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    if (at_field() && field->kind == Kind::integer) {
      out.*(field->integer) = value;
      return true;
    }
    const bool fits = value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
    if (at_field() && field->kind == Kind::int32 && fits) {
      out.sample_rate = static_cast<std::int32_t>(value);
      return true;
    }
    return wrong_type();
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code&) { return wrong_type(); }  // beyond int64
  bool on_double(double, json::string_view, json::error_code&) { return wrong_type(); }         // 1000.0, 1e3
  bool on_bool(bool value, json::error_code&) {
    if (!at_field() || field->kind != Kind::flag) return wrong_type();
    out.*(field->flag) = value;
    return true;
  }
  bool on_null(json::error_code&) { return true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

}  // namespace

bool decode_identify(std::string_view text, Identify& out) {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  options.allow_invalid_utf8 = true;  // replaced where it is kept
  json::basic_parser<Handler> parser(options);
  json::error_code error;
  std::string storage;
  text = whole_pairs(text, storage);
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error || parser.handler().failed) return false;
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) return false;
  out = std::move(parser.handler().out);
  return true;
}

}  // namespace rq::nsq
