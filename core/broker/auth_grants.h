// What an auth server said a client may do (page 10 sections 4.3 and 4.4, page 31 section 3.8): its document, checked and
// compiled. An entry without a Topic matches every one, one without permissions grants nothing but counts (D-05).
//
//  I1 Limits: 256 authorizations, 256 patterns, 4,096 bytes a pattern, 65,536 of all, a compiled automaton within 256 KiB; one
//     more makes the document invalid. Matching is linear in the name, whatever the pattern.
//  I2 Shared by sessions and the cache through AuthGrants::Ref; counts are plain, grants never leave their shard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "core/broker/auth_document.h"

namespace re2 {
class RE2;
}

namespace rq::broker {

class AuthGrants {
 public:
  static constexpr std::size_t kEntriesMax = AuthDocument::kEntriesMax, kPatternsMax = AuthDocument::kPatternsMax;
  static constexpr std::size_t kPatternBytesMax = 4'096, kPatternBytesTotalMax = 65'536;
  static constexpr std::int64_t kAutomatonBytesMax = 256 * 1024;

  enum class Permission : std::uint8_t { subscribe, publish };

  class Ref {
   public:
    Ref() = default;
    explicit Ref(AuthGrants* grants) : grants_(grants) { hold(); }
    Ref(const Ref& other) : grants_(other.grants_) { hold(); }
    Ref(Ref&& other) noexcept : grants_(std::exchange(other.grants_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(grants_, other.grants_);
      return *this;
    }
    ~Ref();
    explicit operator bool() const { return grants_ != nullptr; }
    const AuthGrants* operator->() const { return grants_; }
    const AuthGrants& operator*() const { return *grants_; }

   private:
    void hold() {
      if (grants_ != nullptr) ++grants_->refs_;
    }
    friend class AuthGrants;
    AuthGrants* grants_ = nullptr;
  };

  // The error says what is wrong with the document, for the log.
  static tl::expected<Ref, std::string> parse(std::string_view json);
  ~AuthGrants();

  // A publish is asked about with an empty Channel.
  bool allows(Permission permission, std::string_view topic, std::string_view channel) const;
  bool empty() const { return entries_.empty(); }  // a definite denial

  const std::string& identity() const { return identity_; }
  const std::string& identity_url() const { return identity_url_; }
  std::size_t count() const { return entries_.size(); }
  std::int64_t ttl_seconds() const { return ttl_seconds_; }     // at least 1
  std::uint64_t memory_bytes() const { return memory_bytes_; }  // what they are charged

 private:
  struct Entry {
    bool subscribe = false, publish = false;
    std::unique_ptr<re2::RE2> topic;
    std::vector<std::unique_ptr<re2::RE2>> channels;
  };
  struct Compiler;
  AuthGrants();

  std::uint32_t refs_ = 0;
  std::int64_t ttl_seconds_ = 0;
  std::string identity_, identity_url_;
  std::vector<Entry> entries_;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace rq::broker
