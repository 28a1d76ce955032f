// Loading: the flat file and the environment over the defaults (page 31 sections 2.1 and 2.3).
#include "core/broker/config.h"

#include <charconv>
#include <cstring>

#include "core/base/text.h"
#include "core/broker/auth_query.h"
#include "core/broker/config_keys.h"
#include "core/broker/lookup_registration.h"

namespace rq::broker {
namespace {

using Failure = std::optional<std::string>;

bool all_digits(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (c < '0' || c > '9') return false;
  return true;
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  if (!all_digits(text)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Items trimmed, blanks dropped (D-51).
std::vector<std::string> tidy(const std::vector<std::string>& items) {
  std::vector<std::string> out;
  for (const std::string& item : items)
    if (std::string_view text = trimmed(item, " \t\r\n"); !text.empty()) out.emplace_back(text);
  return out;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

bool is_ipv4(std::string_view text) {
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (part == 3)) return false;
    const std::string_view digits = text.substr(0, dot);
    if (!all_digits(digits) || digits.size() > 3 || (digits.size() > 1 && digits[0] == '0')) return false;
    if (parse_u64(digits).value_or(256) > 255) return false;
    if (part < 3) text.remove_prefix(dot + 1);
  }
  return true;
}

bool is_group(std::string_view text) {
  if (text.empty() || text.size() > 4) return false;
  for (char c : text)
    if (std::strchr("0123456789abcdefABCDEF", c) == nullptr) return false;
  return true;
}

// Groups of a part without "::", an IPv4 tail counting as two; -1: malformed.
int count_groups(std::string_view text, bool tail) {
  if (text.empty()) return 0;
  int groups = 0;
  for (;;) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    const bool last = colon == std::string_view::npos;
    if (last && tail && is_ipv4(group)) return groups + 2;
    if (!is_group(group)) return -1;
    ++groups;
    if (last) return groups;
    text.remove_prefix(colon + 1);
  }
}

bool is_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return count_groups(text, true) == 8;
  const int before = count_groups(text.substr(0, gap), false);
  const int after = count_groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

const char* type_name(const ConfigValue& value) {
  static constexpr const char* kNames[] = {"a table or another type", "an integer", "a boolean", "a string", "a list of strings"};
  return kNames[value.index()];
}

std::string one_of(std::span<const std::string_view> names) {
  std::string out = "must be one of";
  for (std::string_view name : names) {
    out += out.back() == 'f' ? " " : ", ";
    out += name;
  }
  return out;
}

template <class Enum>
Failure set_enum(Enum& out, std::string_view text) {
  const auto names = enum_names(&out);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != text) continue;
    out = static_cast<Enum>(i);
    return std::nullopt;
  }
  return one_of(names);
}

Failure check_text(const ConfigKey& key, std::string_view text) {
  if (key.form == ConfigKey::Form::address && !is_socket_address(text)) return "must be an IP:port literal";
  if (key.name == "storage.data_path" && text.empty()) return "must not be empty";
  return std::nullopt;
}

// What the auth client can ask: it names no server otherwise, and every AUTH would fail.
bool is_auth_address(std::string_view text) {
  for (char c : text)
    if (c <= ' ' || c > '~') return false;
  const AuthAddress address = parse_auth_address(text);
  return (address.scheme == "http" || address.scheme == "https") && is_host_port(address.host + ":" + address.port);
}

Failure check_list(const ConfigKey& key, const std::vector<std::string>& items) {
  if (key.name == "security.auth_http_addresses") {
    for (const std::string& item : items)
      if (!is_auth_address(item)) return "must be host:port or an http:// or https:// URL, found \"" + item + "\"";
  }
  if (key.name != "network.nsqlookupd_tcp_addresses") return std::nullopt;
  if (items.size() > LookupRegistration::kServersMax)
    return "has too many items, at most " + std::to_string(LookupRegistration::kServersMax);
  for (const std::string& item : items)
    if (!is_host_port(item)) return "must be host:port, found \"" + item + "\"";
  return std::nullopt;
}

Failure check_ceiling(const ConfigKey& key, std::uint64_t value) {
  if (value > key.ceiling) return "is out of range, at most " + std::to_string(key.ceiling);
  return std::nullopt;
}

// One value of the file into its place; the failure says what is wrong with it, without the key's name.
struct FileSetter {
  const ConfigKey& key;
  const ConfigValue& value;

  Failure expected(const char* what) const { return std::string("expected ") + what + ", found " + type_name(value); }

  Failure operator()(std::uint64_t* out) const {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number == nullptr) return expected("an integer");
    if (*number < 0) return "is out of range, at least 0";
    *out = static_cast<std::uint64_t>(*number);
    return check_ceiling(key, *out);
  }
  Failure operator()(bool* out) const {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return expected("a boolean");
    *out = *flag;
    return std::nullopt;
  }
  Failure operator()(std::string* out) const {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return expected("a string");
    *out = *text;
    return check_text(key, *text);
  }
  Failure operator()(std::optional<std::string>* out) const { return (*this)(&out->emplace()); }
  Failure operator()(std::vector<std::string>* out) const {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr) return expected("a list of strings");
    *out = tidy(*list);
    return check_list(key, *out);
  }
  template <class Enum>
  Failure operator()(Enum* out) const {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return expected("a string");
    return set_enum(*out, *text);
  }
};

// One environment variable into its place.
struct EnvironmentSetter {
  const ConfigKey& key;
  const std::string& text;

  Failure operator()(std::uint64_t* out) const {
    const auto number = parse_u64(text);
    if (!number) return "must be an integer in decimal";
    *out = *number;
    return check_ceiling(key, *out);
  }
  Failure operator()(bool* out) const {
    if (text != "true" && text != "false") return "must be true or false";
    *out = text == "true";
    return std::nullopt;
  }
  Failure operator()(std::string* out) const {
    *out = text;
    return check_text(key, text);
  }
  Failure operator()(std::optional<std::string>* out) const { return (*this)(&out->emplace()); }
  Failure operator()(std::vector<std::string>* out) const {
    *out = tidy(split_commas(text));
    return check_list(key, *out);
  }
  template <class Enum>
  Failure operator()(Enum* out) const {
    return set_enum(*out, text);
  }
};

Failure apply_file(Config& config, const ConfigFile& file) {
  for (const auto& [name, value] : file) {
    const bool table = std::holds_alternative<std::monostate>(value);
    if (name == "security.tls" || name.starts_with("security.tls.")) config.security.tls.present = true;
    if (table && is_config_section(name)) continue;
    const ConfigKey* key = find_config_key(name);
    if (key == nullptr) {
      if (is_config_section(name)) return name + ": expected a table, found " + type_name(value);
      return (table ? "unknown section or type of value: " : "unknown key: ") + name;
    }
    if (Failure failure = std::visit(FileSetter{*key, value}, key->slot(config))) return name + ": " + *failure;
  }
  return std::nullopt;
}

// The number after the last "-" of a StatefulSet's Pod name, plus 1.
Failure apply_pod_name(Config& config, const std::string& pod) {
  const std::size_t dash = pod.rfind('-');
  const auto ordinal = dash == std::string::npos ? std::nullopt : parse_u64(std::string_view(pod).substr(dash + 1));
  if (!ordinal || *ordinal == UINT64_MAX) return "POD_NAME: no ordinal after the last \"-\"; it gives node.id";
  config.node.id = *ordinal + 1;
  return std::nullopt;
}

Failure apply_environment(Config& config, const Environment& environment) {
  for (const ConfigKey& key : config_table()) {
    if (key.environment.empty()) continue;
    const auto found = environment.find(std::string(key.environment));
    if (found == environment.end()) continue;
    if (Failure failure = std::visit(EnvironmentSetter{key, found->second}, key.slot(config)))
      return std::string(key.environment) + " (" + std::string(key.name) + "): " + *failure;
  }
  const auto pod = environment.find("POD_NAME");
  if (pod == environment.end() || environment.contains("RUSTQUEUE_NODE_ID")) return std::nullopt;
  return apply_pod_name(config, pod->second);
}

}  // namespace

bool is_socket_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view port = text.substr(colon + 1);
  if (port.size() > 5 || parse_u64(port).value_or(65'536) > 65'535) return false;
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return is_ipv6(host.substr(1, host.size() - 2));
  return is_ipv4(host);
}

tl::expected<Config, std::string> load_config(const ConfigFile& file, const Environment& environment) {
  Config config;
  if (Failure failure = apply_file(config, file)) return tl::unexpected(*failure);
  if (Failure failure = apply_environment(config, environment)) return tl::unexpected(*failure);
  return config;
}

}  // namespace rq::broker
