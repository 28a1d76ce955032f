// What an auth server answers, as nsqd reads it (page 10 section 4.3, D-05): keys without case, the last of equal ones
// counts, null is absent, unknown keys hold anything; a known key with a value of another type makes the document invalid.
//
//  I1 What it keeps is bounded: 256 authorizations, 256 patterns; text is never much longer than it came.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace rq::broker {

struct AuthDocument {
  static constexpr std::size_t kEntriesMax = 256, kPatternsMax = 256;

  struct Entry {
    std::string topic;  // an expression; empty when it was not named: it matches every Topic
    std::vector<std::string> channels;
    bool subscribe = false, publish = false;
    bool unknown_permission = false;
  };
  std::int64_t ttl_seconds = 0;
  std::string identity, identity_url;  // valid UTF-8, as the expressions
  std::vector<Entry> entries;
};

// The error says what is wrong, for the log. The values of the fields are not looked at.
tl::expected<AuthDocument, std::string> decode_auth_document(std::string_view json);

}  // namespace rq::broker
