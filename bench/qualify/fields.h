// Typed access to the fields of a JSON document that keeps the first complaint. After a complaint, values are empty or 0.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace rq::qualify {

class Fields {
 public:
  void place(std::string name) { place_ = std::move(name); }  // where the fields are, for complaints; "": the document itself
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  std::string at(std::string_view what) const;  // "runs[3]: what"
  void require(bool holds, std::string_view complaint);

  std::uint64_t count(const boost::json::object& json, const char* key, std::uint64_t least);  // an integer
  double number(const boost::json::object& json, const char* key);                             // finite
  void positive(const boost::json::object& json, const char* key);
  bool flag(const boost::json::object& json, const char* key);
  std::string text(const boost::json::object& json, const char* key);
  const boost::json::object& object(const boost::json::object& json, const char* key);
  const boost::json::array& array(const boost::json::object& json, const char* key);

 private:
  const boost::json::value* find(const boost::json::object& json, const char* key);
  void wrong(const char* key, std::string_view wanted);

  std::string place_, error_;
};

}  // namespace rq::qualify
