// Documents of auth servers: parsing never crashes, limits hold, what is kept is text, and matching ends.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/broker/auth_grants.h"
#include "core/nsq/quote.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rq::broker::AuthGrants;
  const auto grants = AuthGrants::parse({reinterpret_cast<const char*>(data), size});
  if (!grants) {
    RQ_CHECK(!grants.error().empty());
    return 0;
  }
  RQ_CHECK((*grants)->ttl_seconds() > 0 && (*grants)->count() <= AuthGrants::kEntriesMax);
  const bool may = (*grants)->allows(AuthGrants::Permission::publish, "topic", "") ||
                   (*grants)->allows(AuthGrants::Permission::subscribe, "topic", "channel");
  RQ_CHECK(!may || !(*grants)->empty());
  for (const std::string& text : {(*grants)->identity(), (*grants)->identity_url()}) {
    RQ_CHECK(rq::nsq::clean_utf8(text, text.size()) == text);
  }
  return 0;
}
