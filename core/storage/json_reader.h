// Strict reading of the JSON documents on disk (page 20 section 0): unknown keys are ignored; a repeated known key, a missing
// required key, a wrong type, a number that is not a plain integer in range, invalid UTF-8 and trailing bytes are errors. A
// stream of parser events goes into targets, so that a 64 MiB checkpoint never becomes a tree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/storage/types.h"

namespace rq::storage {

// Receives one value. Every function returns null, or what is wrong. Nothing matches by default.
class JsonTarget {
 public:
  virtual ~JsonTarget() = default;
  virtual const char* on_null() { return kType; }
  virtual const char* on_bool(bool) { return kType; }
  virtual const char* on_unsigned(std::uint64_t) { return kType; }
  virtual const char* on_negative(std::int64_t) { return kType; }
  virtual const char* on_text(std::string_view) { return kType; }
  virtual const char* on_object_begin() { return kType; }
  // The target of that member's value; null to skip it.
  virtual const char* on_key(std::string_view, JsonTarget*&) { return kType; }
  virtual const char* on_object_end() { return nullptr; }
  virtual const char* on_array_begin() { return kType; }
  virtual JsonTarget* element() { return nullptr; }

  static constexpr const char* kType = "value of the wrong type";
  static constexpr const char* kRange = "number out of range";
};

// Null, or what is wrong with the document.
using JsonDefect = std::optional<std::string>;
JsonDefect read_json(ConstBuf text, JsonTarget& document);

// --- targets

class JsonUnsigned final : public JsonTarget {
 public:
  explicit JsonUnsigned(std::uint64_t& out, std::uint64_t max = UINT64_MAX) : out_(out), max_(max) {}
  const char* on_unsigned(std::uint64_t value) override {
    if (value > max_) return kRange;
    out_ = value;
    return nullptr;
  }

 private:
  std::uint64_t& out_;
  std::uint64_t max_;
};

// null leaves it empty.
class JsonOptionalUnsigned final : public JsonTarget {
 public:
  explicit JsonOptionalUnsigned(std::optional<std::uint64_t>& out) : out_(out) {}
  const char* on_null() override { return nullptr; }
  const char* on_unsigned(std::uint64_t value) override {
    out_ = value;
    return nullptr;
  }

 private:
  std::optional<std::uint64_t>& out_;
};

class JsonBool final : public JsonTarget {
 public:
  explicit JsonBool(bool& out) : out_(out) {}
  const char* on_bool(bool value) override {
    out_ = value;
    return nullptr;
  }

 private:
  bool& out_;
};

class JsonText final : public JsonTarget {
 public:
  explicit JsonText(std::string& out) : out_(out) {}
  const char* on_text(std::string_view value) override {
    out_ = value;
    return nullptr;
  }

 private:
  std::string& out_;
};

class JsonUnsignedArray final : public JsonTarget {
 public:
  explicit JsonUnsignedArray(std::vector<std::uint64_t>& out) : out_(out) {}
  const char* on_array_begin() override { return nullptr; }
  JsonTarget* element() override { return &element_; }

 private:
  struct Element final : JsonTarget {
    explicit Element(std::vector<std::uint64_t>& values) : out(values) {}
    const char* on_unsigned(std::uint64_t value) override {
      out.push_back(value);
      return nullptr;
    }
    std::vector<std::uint64_t>& out;
  };
  std::vector<std::uint64_t>& out_;
  Element element_{out_};
};

// Keys are canonical decimals; the last of equal keys wins.
template <class Value>
class JsonNumberMap final : public JsonTarget {
 public:
  explicit JsonNumberMap(std::map<std::uint64_t, Value>& out) : value_(out) {}
  const char* on_object_begin() override { return nullptr; }
  const char* on_key(std::string_view key, JsonTarget*& target) override;

 private:
  struct Member final : JsonTarget {
    explicit Member(std::map<std::uint64_t, Value>& values) : out(values) {}
    const char* on_unsigned(std::uint64_t value) override;
    const char* on_negative(std::int64_t value) override;
    std::map<std::uint64_t, Value>& out;
    std::uint64_t key = 0;
  };
  Member value_;
};
extern template class JsonNumberMap<std::int64_t>;
extern template class JsonNumberMap<std::uint16_t>;

// An object with known members. A repeated known key and a missing required one are errors.
class JsonObject : public JsonTarget {
 public:
  enum class Need : std::uint8_t { required, optional };
  void add(std::string_view name, JsonTarget& target, Need need = Need::required) { fields_.push_back({name, &target, need}); }

  const char* on_object_begin() override;
  const char* on_key(std::string_view key, JsonTarget*& target) override;
  const char* on_object_end() override;

 private:
  struct Field {
    std::string_view name;
    JsonTarget* target;
    Need need;
    bool seen = false;
  };
  std::vector<Field> fields_;
  std::string reason_;
};

}  // namespace rq::storage
