// Bodies of MPUB: however they are cut, the scanner says the same, and what it accepts splits into messages that fill the body.
// The first byte chooses the pieces, the second the largest message.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/broker/http_publish.h"
#include "core/nsq/mpub.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rq;
  if (size < 3 || size > 8'192) return 0;
  const ConstBuf body = std::as_bytes(std::span(data + 2, size - 2));
  const nsq::MpubLimits limits{nsq::mpub_messages_max(8'192), 1u + data[1] * 16u};

  nsq::MpubScanner whole(static_cast<std::uint32_t>(body.size()), limits), cut(static_cast<std::uint32_t>(body.size()), limits);
  const std::optional<std::string> error = whole.advance(body);
  std::optional<std::string> found;
  for (std::size_t at = 0; at < body.size() && !found; at += 1 + data[0] % 32)
    found = cut.advance(body.first(std::min(body.size(), at + 1 + data[0] % 32)));
  RQ_CHECK(error == found);
  RQ_CHECK(!error || error->starts_with("E_BAD_BODY MPUB ") || error->starts_with("E_BAD_MESSAGE MPUB "));

  const std::string query = "topic=t&binary=true";
  const broker::PublishParse parsed = broker::parse_mpub(query, Slice::copy_of(body), {limits.message_bytes_max, 8'192, 1'000});
  if (error) return 0;
  const std::vector<Slice> messages = nsq::mpub_messages(Slice::copy_of(body));
  std::size_t bytes = 4;
  for (const Slice& message : messages) {
    RQ_CHECK(!message.empty() && message.size() <= limits.message_bytes_max);
    bytes += 4 + message.size();
  }
  RQ_CHECK(messages.size() == whole.count() && bytes == body.size());
  RQ_CHECK(!parsed.refusal && parsed.request.bodies.size() == messages.size());  // HTTP takes what TCP takes
  return 0;
}
