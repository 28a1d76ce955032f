// What the auth server of a fuzzed connection does, chosen by one byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/auth_server.h"

namespace rq::fuzz {

inline constexpr const char* kAuthAddress = "127.0.0.1:4181";

// Publishing to the Topic t, for an hour or for one second.
inline bool grants_publishing(std::uint8_t kind) { return kind % 8 <= 1; }

inline bool grant_expires(std::uint8_t kind) { return kind % 8 == 1; }

inline std::string auth_answer(std::uint8_t kind, std::string_view document) {
  using sim::AuthServer;
  switch (kind % 8) {
    case 0:
      return AuthServer::grant(R"(["subscribe","publish"])", ".*", R"([".*"])");
    case 1:
      return AuthServer::grant(R"(["publish"])", "^t", R"([".*"])", 1);
    case 2:
      return AuthServer::status(403);
    case 3:
      return AuthServer::status(500);
    case 4:
      return {};  // never
    case 5:
      return std::string(document);  // no HTTP, mostly
    default:
      return AuthServer::document(document);
  }
}

}  // namespace rq::fuzz
