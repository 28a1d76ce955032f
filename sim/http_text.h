// HTTP/1.1 replies as a test client reads them: status, headers, a body with a length, in chunks, or up to the close.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rq::sim {

struct HttpReply {
  int status = 0;                                            // 0: no complete reply within the limit
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string header(std::string_view name) const;  // "" if absent
};

// The first reply in `raw`; nothing while it is incomplete. `head`: a reply without a body (HEAD request).
std::optional<HttpReply> parse_reply(std::string_view raw, bool closed, bool head = false);

std::string http_request(std::string_view method, std::string_view target, std::string_view body,
                         const std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace rq::sim
