// The table of configuration keys: name, environment variable, range of the type, and place in Config. Private to config*.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/broker/config.h"

namespace rq::broker {

using ConfigSlot = std::variant<std::uint64_t*, bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                                rq::queue::AckMode*, BarrierStrategy*, ClientAuth*, TlsVersion*>;

struct ConfigKey {
  enum class Form : std::uint8_t { plain, address };
  std::string_view name;         // dotted, as in messages
  std::string_view environment;  // empty: no override
  std::uint64_t ceiling = 0;     // largest value of an integer key's type
  Form form = Form::plain;
  ConfigSlot (*slot)(Config&) = nullptr;
};

std::span<const ConfigKey> config_table();
const ConfigKey* find_config_key(std::string_view name);
bool is_config_section(std::string_view name);
std::string slot_text(const ConfigSlot& slot);

// Names of an enumeration's values, in order of the values.
std::span<const std::string_view> enum_names(const rq::queue::AckMode*);
std::span<const std::string_view> enum_names(const BarrierStrategy*);
std::span<const std::string_view> enum_names(const ClientAuth*);
std::span<const std::string_view> enum_names(const TlsVersion*);

}  // namespace rq::broker
