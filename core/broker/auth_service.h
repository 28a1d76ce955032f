// AUTH for all connections: questions to the auth servers, what they granted for a while, and the memory of both (D-05, page 31
// section 3.8).
//
//  I1 One budget, auth_memory_bytes in units of 4,096: three answers' worth while a question is asked, and grants for as long as
//     a session or the cache holds them. When it is short the oldest cached grants go first, then the question fails.
//  I2 The cache holds successes only, until their TTL, first in first out, at most auth_cache_max_entries; secrets are in its
//     keys as a hash only.
//  I3 An answer is taken by settle() of a turn at the earliest, so the asker never meets it inside its own call; a cancelled
//     question is answered to nobody but still fills the cache.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/broker/admission.h"
#include "core/broker/auth_query.h"

namespace rq::broker {

// Grants with their charge and their end, as a session holds them. Moved, never copied.
class AuthLease {
 public:
  AuthLease() = default;
  AuthLease(ByteBudget& memory, AuthGrants::Ref grants, Instant expires, std::uint64_t charge)
      : memory_(&memory), grants_(std::move(grants)), expires_(expires), charge_(charge) {}
  AuthLease(AuthLease&& other) noexcept { *this = std::move(other); }
  AuthLease& operator=(AuthLease&& other) noexcept;
  ~AuthLease() { reset(); }
  void reset();

  explicit operator bool() const { return static_cast<bool>(grants_); }
  const AuthGrants* operator->() const { return &*grants_; }
  Instant expires() const { return expires_; }

 private:
  ByteBudget* memory_ = nullptr;
  AuthGrants::Ref grants_;
  Instant expires_{};
  std::uint64_t charge_ = 0;
};

struct AuthAnswer {
  std::uint32_t slot = 0;
  AuthVerdict verdict = AuthVerdict::failed;
  AuthLease lease;  // when granted
};

class AuthService {
 public:
  static constexpr std::uint64_t kAnswersCharged = 3;

  AuthService(io::Host& host, const Config& config, ChunkPool& pool);
  ~AuthService();

  bool enabled() const { return !config_.security.auth_http_addresses.empty(); }
  void ask(std::uint32_t slot, AuthQuestion question, Now now);  // one at a time for a slot
  void cancel(std::uint32_t slot);

  // Ends questions and gives their answers; then starts what can be started.
  std::vector<AuthAnswer> take_answers(Now now);
  void settle(Now now);
  void expire(Now now);
  Instant next_deadline() const;
  bool has_answers() const;

  std::uint64_t memory_used() const { return memory_.used(); }
  std::size_t cached() const { return cache_.size(); }

 private:
  using Key = std::array<std::uint8_t, 32>;
  struct Cached {
    AuthLease lease;
    AuthGrants::Ref grants;
    std::uint64_t order = 0;
  };
  struct Running {
    std::uint32_t slot = 0;
    bool wanted = true;
    std::uint64_t charge = 0;
    Key key{};
    std::unique_ptr<AuthQuery> query;
  };

  static Key key_of(const AuthQuestion& question);
  bool reserve(std::uint64_t bytes);  // drops cached grants as far as needed
  void drop_oldest();
  AuthLease lease_of(const AuthGrants::Ref& grants, Instant expires);
  void remember(const Key& key, const AuthGrants::Ref& grants, Instant expires);
  AuthAnswer finish(Running& running, Now now);

  io::Host& host_;
  const Config& config_;
  ChunkPool& pool_;
  ByteBudget memory_;
  std::map<Key, Cached> cache_;
  std::map<std::uint64_t, Key> oldest_;  // by order
  std::uint64_t next_order_ = 0;
  std::vector<Running> running_;
  std::vector<AuthAnswer> ready_;
};

}  // namespace rq::broker
