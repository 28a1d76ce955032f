#include "core/storage/json_reader.h"

#include <boost/json/basic_parser_impl.hpp>
#include <limits>

#include "core/base/text.h"

namespace rq::storage {
namespace {

namespace json = boost::json;

constexpr std::size_t kDepthMax = 32;

// Routes parser events to the target on top of the stack; a null target swallows a skipped value.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  explicit Handler(JsonTarget& document) : value_(&document) {}

  const char* reason() const { return reason_; }
  const std::string& path() const { return path_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code& ec) {
    JsonTarget* target = next();
    stack_.push_back({target, true});
    return check(target == nullptr ? nullptr : target->on_object_begin(), ec);
  }
  bool on_object_end(std::size_t, json::error_code& ec) { return close(ec); }
  bool on_array_begin(json::error_code& ec) {
    JsonTarget* target = next();
    stack_.push_back({target, false});
    return check(target == nullptr ? nullptr : target->on_array_begin(), ec);
  }
  bool on_array_end(std::size_t, json::error_code& ec) { return close(ec); }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    value_ = nullptr;
    JsonTarget* object = stack_.back().target;
    const char* wrong = object == nullptr ? nullptr : object->on_key(text_, value_);
    if (stack_.size() == 1) path_ = text_;
    text_.clear();
    return check(wrong, ec);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    JsonTarget* target = next();
    const char* wrong = target == nullptr ? nullptr : target->on_text(text_);
    text_.clear();
    return check(wrong, ec);
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, json::error_code& ec) {
    JsonTarget* target = next();
    if (target == nullptr) return true;
    return check(number < 0 ? target->on_negative(number) : target->on_unsigned(static_cast<std::uint64_t>(number)), ec);
  }
  bool on_uint64(std::uint64_t number, json::string_view, json::error_code& ec) {
    JsonTarget* target = next();
    return check(target == nullptr ? nullptr : target->on_unsigned(number), ec);
  }
  bool on_double(double, json::string_view, json::error_code& ec) {
    return check(next() == nullptr ? nullptr : "number that is not a plain integer in range", ec);
  }
  bool on_bool(bool flag, json::error_code& ec) {
    JsonTarget* target = next();
    return check(target == nullptr ? nullptr : target->on_bool(flag), ec);
  }
  bool on_null(json::error_code& ec) {
    JsonTarget* target = next();
    return check(target == nullptr ? nullptr : target->on_null(), ec);
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  struct Level {
    JsonTarget* target;
    bool object;
  };

  JsonTarget* next() {
    if (stack_.empty() || stack_.back().object) return value_;
    return stack_.back().target == nullptr ? nullptr : stack_.back().target->element();
  }
  bool close(json::error_code& ec) {
    const Level level = stack_.back();
    stack_.pop_back();
    if (stack_.size() == 0) path_.clear();
    return check(level.object && level.target != nullptr ? level.target->on_object_end() : nullptr, ec);
  }
  bool check(const char* wrong, json::error_code& ec) {
    if (wrong == nullptr) return true;
    reason_ = wrong;
    ec = json::error::exception;  // any code: reason_ tells
    return false;
  }

  JsonTarget* value_;
  std::vector<Level> stack_;
  std::string text_;
  std::string path_;  // the top-level member that is being read
  const char* reason_ = nullptr;
};

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

JsonDefect read_json(ConstBuf text, JsonTarget& document) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<Handler> parser(options, document);
  const std::string_view characters = text_of(text);
  json::error_code ec;
  std::size_t used = parser.write_some(false, characters.data(), characters.size(), ec);
  const Handler& handler = parser.handler();
  if (handler.reason() != nullptr)
    return handler.path().empty() ? std::string(handler.reason()) : handler.path() + ": " + handler.reason();
  if (ec || !parser.done()) return "not a JSON document";
  while (used < characters.size() && blank(characters[used])) ++used;
  if (used < characters.size()) return "bytes after the JSON document";
  return std::nullopt;
}

template <class Value>
const char* JsonNumberMap<Value>::on_key(std::string_view key, JsonTarget*& target) {
  const auto number = parse_decimal(key);
  if (!number) return "key that is not a decimal number";
  value_.key = *number;
  target = &value_;
  return nullptr;
}

template <class Value>
const char* JsonNumberMap<Value>::Member::on_unsigned(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Value>::max())) return kRange;
  out[key] = static_cast<Value>(value);
  return nullptr;
}

template <class Value>
const char* JsonNumberMap<Value>::Member::on_negative(std::int64_t value) {
  if (value < static_cast<std::int64_t>(std::numeric_limits<Value>::min())) return kRange;
  out[key] = static_cast<Value>(value);
  return nullptr;
}

template class JsonNumberMap<std::int64_t>;
template class JsonNumberMap<std::uint16_t>;

const char* JsonObject::on_object_begin() {
  for (Field& field : fields_) field.seen = false;
  return nullptr;
}

const char* JsonObject::on_key(std::string_view key, JsonTarget*& target) {
  for (Field& field : fields_) {
    if (field.name != key) continue;
    if (field.seen) {
      reason_ = "repeated key " + std::string(field.name);
      return reason_.c_str();
    }
    field.seen = true;
    target = field.target;
    return nullptr;
  }
  return nullptr;
}

const char* JsonObject::on_object_end() {
  for (const Field& field : fields_) {
    if (field.seen || field.need == Need::optional) continue;
    reason_ = "missing key " + std::string(field.name);
    return reason_.c_str();
  }
  return nullptr;
}

}  // namespace rq::storage
