#include "core/broker/lookup_query.h"

#include <fmt/format.h>

#include <utility>

#include "core/storage/json_reader.h"
#include "core/storage/names.h"

namespace rq::broker {
namespace {

// What of a list of names can be a durable Channel here.
class ChannelList final : public storage::JsonTarget {
 public:
  explicit ChannelList(std::vector<std::string>& out) : element_(out) {}
  const char* on_array_begin() override { return nullptr; }
  JsonTarget* element() override { return &element_; }

 private:
  struct Element final : JsonTarget {
    explicit Element(std::vector<std::string>& names) : out(names) {}
    const char* on_text(std::string_view name) override {
      if (storage::valid_name(name) && !storage::ephemeral_name(name)) out.emplace_back(name);
      return nullptr;
    }
    std::vector<std::string>& out;
  };
  Element element_;
};

// A Topic's name in a query: of its characters only '#' means something there.
std::string escaped(std::string_view name) {
  const std::size_t hash = name.find('#');
  if (hash == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, hash)).append("%23").append(name.substr(hash + 1));
}

}  // namespace

LookupQuery::LookupQuery(io::Host& host, ChunkPool& pool, std::string address, std::string topic)
    : Fetch(host, pool, kAnswerBytesMax), server_(std::move(address)), topic_(std::move(topic)) {}

void LookupQuery::settle(Now now) {
  if (!over_ && !running()) {
    std::string request = fmt::format(
        "GET /channels?topic={} HTTP/1.1\r\nHost: {}\r\nAccept: application/vnd.nsq; version=1.0\r\nConnection: close\r\n\r\n",
        escaped(topic_), server_);
    start({server_, false, std::move(request), kConnectNs, kLimitNs}, now);
  }
  Fetch::settle(now);
}

void LookupQuery::on_answer(int status, const std::string& body) {
  if (status != 200) return on_failure(fmt::format("status {}", status));
  storage::JsonObject document;
  ChannelList list(channels_);
  document.add("channels", list);
  if (const storage::JsonDefect defect = storage::read_json(bytes_of(body), document)) {
    channels_.clear();
    return on_failure(*defect);
  }
  over_ = true;
}

void LookupQuery::on_failure(std::string_view why) {
  host_.log.log(io::Level::warn, "nsqlookupd_query_failed",
                fmt::format("address=\"{}\" topic=\"{}\" reason=\"{}\"", server_, topic_, why));
  over_ = true;
}

void LookupQuery::end() {
  over_ = true;
  stop();
}

}  // namespace rq::broker
