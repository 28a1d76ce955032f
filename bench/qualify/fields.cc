#include "bench/qualify/fields.h"

#include <fmt/format.h>

#include <cmath>

namespace rq::qualify {

std::string Fields::at(std::string_view what) const {
  return place_.empty() ? std::string(what) : fmt::format("{}: {}", place_, what);
}

void Fields::require(bool holds, std::string_view complaint) {
  if (!holds && ok()) error_ = complaint;
}

void Fields::wrong(const char* key, std::string_view wanted) { require(false, at(fmt::format("{} is {}", key, wanted))); }

const boost::json::value* Fields::find(const boost::json::object& json, const char* key) {
  const boost::json::value* value = json.if_contains(key);
  if (value == nullptr) wrong(key, "missing");
  return value;
}

std::uint64_t Fields::count(const boost::json::object& json, const char* key, std::uint64_t least) {
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return 0;
  boost::json::error_code failed;
  const auto number = value->is_number() ? value->to_number<std::uint64_t>(failed) : 0;
  if (!value->is_number() || failed) {
    wrong(key, "no whole number from 0 on");
    return 0;
  }
  if (number < least) wrong(key, "not above 0");
  return number;
}

double Fields::number(const boost::json::object& json, const char* key) {
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return 0;
  if (!value->is_number() || !std::isfinite(value->to_number<double>())) {
    wrong(key, "no number");
    return 0;
  }
  return value->to_number<double>();
}

void Fields::positive(const boost::json::object& json, const char* key) {
  const double value = number(json, key);
  if (ok() && !(value > 0)) wrong(key, "not above 0");
}

bool Fields::flag(const boost::json::object& json, const char* key) {
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return false;
  if (!value->is_bool()) wrong(key, "neither true nor false");
  return value->is_bool() && value->get_bool();
}

std::string Fields::text(const boost::json::object& json, const char* key) {
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    wrong(key, "no text");
    return {};
  }
  return std::string(value->get_string());
}

const boost::json::object& Fields::object(const boost::json::object& json, const char* key) {
  static const boost::json::object kNone;
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return kNone;
  if (!value->is_object()) wrong(key, "no object");
  return value->is_object() ? value->get_object() : kNone;
}

const boost::json::array& Fields::array(const boost::json::object& json, const char* key) {
  static const boost::json::array kNone;
  const boost::json::value* value = find(json, key);
  if (value == nullptr) return kNone;
  if (!value->is_array()) wrong(key, "no list");
  return value->is_array() ? value->get_array() : kNone;
}

}  // namespace rq::qualify
