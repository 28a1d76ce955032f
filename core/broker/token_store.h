// Tokens of the HTTP routes (page 31 sections 5.1 and 5.2): one file a class, read at start and once a second.
//
//  I1 A class without a file is open. A class whose latest reading failed is closed to everybody, never open.
//  I2 A comparison takes the same time wherever the two texts differ; only another length returns early.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/broker/config.h"
#include "core/io/ports.h"
#include "core/storage/file_read.h"

namespace rq::broker {

enum class TokenClass : std::uint8_t { none, publish, admin, registry_or_console, console };

// What `authorization` ("Bearer <token>") and `X-RustQueue-Token` say; a Bearer value alone counts when it is there.
std::string_view presented_token(std::string_view authorization, std::string_view header);
bool same_token(std::string_view a, std::string_view b);

class TokenStore {
 public:
  static constexpr std::int64_t kPeriodNs = kSecond;
  static constexpr std::uint64_t kTokenBytesMax = 64 * 1024;

  TokenStore(io::Host& host, const Config::Security& security);
  TokenStore(const TokenStore&) = delete;

  void begin() { begun_ = true; }
  bool known() const { return rounds_ > 0; }               // every file was read once
  const std::string& failure() const { return failure_; }  // of the first round; empty when it succeeded
  enum class Verdict : std::uint8_t { ok, unauthorized, unavailable };
  Verdict check(TokenClass wanted, std::string_view authorization, std::string_view header) const;

  void settle(Now now);  // starts a round when one is due
  void end() { begun_ = false; }
  Instant next_deadline() const { return begun_ && !reading_ ? next_at_ : Instant::never(); }

 private:
  struct Source {
    std::string_view scope;  // of the log lines
    std::optional<std::string> path;
    std::string token;
    bool available = false;
  };
  enum : std::size_t { kPublish, kAdmin, kRegistry, kConsole, kSources };
  void on_step(io::Op& op);
  void go_on();
  void take();
  Verdict compare(const Source& source, std::string_view token) const;

  io::Host& host_;
  io::Op op_;
  storage::FileRead file_;
  std::array<Source, kSources> sources_;
  std::size_t at_ = 0;
  bool begun_ = false, reading_ = false;
  std::uint64_t rounds_ = 0;
  std::string failure_;
  Instant next_at_{};
};

}  // namespace rq::broker
