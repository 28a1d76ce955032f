#include "core/storage/management_files.h"

#include "core/base/json_writer.h"
#include "core/storage/json_reader.h"

namespace rq::storage {
namespace {

constexpr std::uint64_t kFormat = 1;

class TimeMap final : public JsonTarget {
 public:
  explicit TimeMap(std::map<std::string, std::int64_t>& out) : value_(out) {}
  const char* on_object_begin() override { return nullptr; }
  const char* on_key(std::string_view key, JsonTarget*& target) override {
    value_.key = key;
    target = &value_;
    return nullptr;
  }

 private:
  struct Member final : JsonTarget {
    explicit Member(std::map<std::string, std::int64_t>& values) : out(values) {}
    const char* on_unsigned(std::uint64_t value) override {
      if (value > INT64_MAX) return kRange;
      out[key] = static_cast<std::int64_t>(value);
      return nullptr;
    }
    const char* on_negative(std::int64_t value) override {
      out[key] = value;
      return nullptr;
    }
    std::map<std::string, std::int64_t>& out;
    std::string key;
  };
  Member value_;
};

class TextArray final : public JsonTarget {
 public:
  explicit TextArray(std::vector<std::string>& out) : element_(out) {}
  const char* on_array_begin() override { return nullptr; }
  JsonTarget* element() override { return &element_; }

 private:
  struct Element final : JsonTarget {
    explicit Element(std::vector<std::string>& values) : out(values) {}
    const char* on_text(std::string_view value) override {
      out.emplace_back(value);
      return nullptr;
    }
    std::vector<std::string>& out;
  };
  Element element_;
};

// {"revision":N,"changed":B} or null.
class Result final : public JsonObject {
 public:
  explicit Result(std::optional<ManagementResult>& out) : out_(out) {
    add("revision", revision_);
    add("changed", changed_);
  }
  const char* on_null() override {
    out_.reset();
    return nullptr;
  }
  const char* on_object_end() override {
    if (const char* wrong = JsonObject::on_object_end()) return wrong;
    out_ = value_;
    return nullptr;
  }

 private:
  std::optional<ManagementResult>& out_;
  ManagementResult value_;
  JsonUnsigned revision_{value_.revision};
  JsonBool changed_{value_.changed};
};

class Operations final : public JsonTarget {
 public:
  explicit Operations(std::map<std::string, ManagementOperation>& out) : record_(out) {}
  const char* on_object_begin() override { return nullptr; }
  const char* on_key(std::string_view key, JsonTarget*& target) override {
    if (!valid_operation_id(key)) return "operation id that is not 16 to 128 of A-Z a-z 0-9 - _";
    record_.key = key;
    target = &record_;
    return nullptr;
  }

 private:
  struct Record final : JsonObject {
    explicit Record(std::map<std::string, ManagementOperation>& values) : out(values) {
      add("fingerprint", fingerprint);
      add("topic", topic);
      add("state", state);
      add("result", result, Need::optional);
    }
    const char* on_object_begin() override {
      record = {};
      state_text.clear();
      return JsonObject::on_object_begin();
    }
    const char* on_object_end() override {
      if (const char* wrong = JsonObject::on_object_end()) return wrong;
      if (record.topic.empty()) return "operation with an empty topic";
      if (state_text != "pending" && state_text != "completed") return "operation in an unknown state";
      record.completed = state_text == "completed";
      out[key] = record;
      return nullptr;
    }
    std::map<std::string, ManagementOperation>& out;
    std::string key;
    ManagementOperation record;
    std::string state_text;
    JsonText fingerprint{record.fingerprint};
    JsonText topic{record.topic};
    JsonText state{state_text};
    Result result{record.result};
  };
  Record record_;
};

void put_times(JsonWriter& json, std::string_view name, const std::map<std::string, std::int64_t>& times) {
  json.key(name).begin_object();
  for (const auto& [key, until] : times) json.key(key).value(until);
  json.end_object();
}

std::string wrong_format(std::uint64_t found) { return "format " + std::to_string(found) + ", this program reads 1"; }

}  // namespace

bool valid_operation_id(std::string_view id) {
  if (id.size() < 16 || id.size() > 128) return false;
  for (const char c : id) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_') return false;
  }
  return true;
}

std::string fence_key(std::string_view topic, std::string_view channel) {
  std::string key = std::to_string(topic.size());
  key += ':';
  key += topic;
  key += ':';
  key += channel;
  return key;
}

std::string encode_fences(const ManagementFences& fences) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("format").value(kFormat).key("revision").value(fences.revision);
  put_times(json, "topics", fences.topics);
  put_times(json, "channels", fences.channels);
  put_times(json, "local_channels", fences.local_channels);
  json.end_object();
  return out;
}

std::string encode_operations(const ManagementOperations& operations) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("format").value(kFormat).key("records").begin_object();
  for (const auto& [id, record] : operations.records) {
    json.key(id).begin_object().key("fingerprint").value(record.fingerprint).key("topic").value(record.topic);
    json.key("state").value(record.completed ? "completed" : "pending").key("result");
    if (record.result) {
      json.begin_object().key("revision").value(record.result->revision);
      json.key("changed").value(record.result->changed).end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_object().key("completed_order").begin_array();
  for (const std::string& id : operations.completed_order) json.value(id);
  json.end_array().end_object();
  return out;
}

Decoded<ManagementFences> decode_fences(ConstBuf content) {
  using Need = JsonObject::Need;
  ManagementFences fences;
  std::uint64_t format = 0;
  JsonUnsigned format_target(format);
  JsonText revision_target(fences.revision);
  TimeMap topics(fences.topics), channels(fences.channels), local_channels(fences.local_channels);
  JsonObject document;
  document.add("format", format_target);
  document.add("revision", revision_target, Need::optional);
  document.add("topics", topics, Need::optional);
  document.add("channels", channels, Need::optional);
  document.add("local_channels", local_channels, Need::optional);
  if (JsonDefect defect = read_json(content, document)) return tl::unexpected(*defect);
  if (format != kFormat) return tl::unexpected(wrong_format(format));
  return fences;
}

Decoded<ManagementOperations> decode_operations(ConstBuf content) {
  using Need = JsonObject::Need;
  ManagementOperations operations;
  std::uint64_t format = 0;
  JsonUnsigned format_target(format);
  Operations records(operations.records);
  TextArray order(operations.completed_order);
  JsonObject document;
  document.add("format", format_target);
  document.add("records", records, Need::optional);
  document.add("completed_order", order, Need::optional);
  if (JsonDefect defect = read_json(content, document)) return tl::unexpected(*defect);
  if (format != kFormat) return tl::unexpected(wrong_format(format));
  return operations;
}

}  // namespace rq::storage
