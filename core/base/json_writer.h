// Compact JSON text, appended to a string: no blanks, keys in the order of the calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rq {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& number_key(std::uint64_t number);  // maps keyed by a number: the decimal as a string

  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint32_t number) { return value(std::uint64_t{number}); }
  JsonWriter& value(std::int32_t number) { return value(std::int64_t{number}); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& null();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool first_ = true;  // no comma before the next element
};

// Appends the text in quotes; control characters, quote and backslash escaped, everything else as it is.
void put_json_string(std::string& out, std::string_view text);

}  // namespace rq
