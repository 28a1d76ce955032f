#include "core/broker/lookup_query.h"

#include <fmt/format.h>

#include <utility>

#include "core/storage/json_reader.h"
#include "core/storage/names.h"

namespace rq::broker {
namespace {

constexpr std::size_t kHeadBytesMax = 16 * 1024;

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
    : host_(host),
      pool_(pool),
      address_(std::move(address)),
      topic_(std::move(topic)),
      request_(
          fmt::format("GET /channels?topic={} HTTP/1.1\r\nHost: {}\r\nAccept: application/vnd.nsq; version=1.0\r\nConnection: "
                      "close\r\n\r\n",
                      escaped(topic_), address_)),
      response_(kHeadBytesMax, kAnswerBytesMax) {
  io::bind<&LookupQuery::on_op>(op_, this);
  io::bind<&LookupQuery::on_read>(read_, this);
}

void LookupQuery::settle(Now now) {
  if (over_ || op_.in_flight || read_.in_flight) return;
  switch (step_) {
    case Step::idle:
      step_ = Step::connecting;
      deadline_ = now.mono + kLimitNs;
      host_.net.connect(op_, address_, now.mono + kConnectNs);
      break;
    case Step::connecting:
      break;
    case Step::writing: {
      const ConstBuf rest = bytes_of(request_).subspan(request_done_);
      host_.net.write_some(op_, stream_, std::span(&rest, 1));
      break;
    }
    case Step::reading:
      host_.net.read_some(read_, stream_, pool_);
      break;
  }
}

void LookupQuery::on_op(io::Op& op) {
  if (step_ == Step::connecting) {
    if (op.error) return give_up(io::errc_name(op.error.code));
    stream_ = op.stream();
    step_ = Step::writing;
    if (over_) end();  // given up meanwhile
    return;
  }
  if (over_) return;
  if (op.error) return give_up(io::errc_name(op.error.code));
  request_done_ += op.value;
  if (request_done_ == request_.size()) step_ = Step::reading;
}

void LookupQuery::on_read(io::ReadOp& op) {
  const Slice data = std::move(op.data);
  if (over_) return;
  if (op.error && op.error.code != io::Errc::eof) return give_up(io::errc_name(op.error.code));
  op.error ? response_.end_of_input() : response_.feed(data.bytes());
  using Stage = http::ResponseParser::Stage;
  if (response_.stage() == Stage::failed) return give_up("no usable answer");
  if (response_.stage() == Stage::complete) judge();
}

void LookupQuery::judge() {
  if (response_.status() != 200) return give_up(fmt::format("status {}", response_.status()));
  storage::JsonObject document;
  ChannelList list(channels_);
  document.add("channels", list);
  if (const storage::JsonDefect defect = storage::read_json(bytes_of(response_.body()), document)) {
    channels_.clear();
    return give_up(*defect);
  }
  end();
}

void LookupQuery::give_up(std::string_view why) {
  if (!over_)
    host_.log.log(io::Level::warn, "nsqlookupd_query_failed",
                  fmt::format("address=\"{}\" topic=\"{}\" reason=\"{}\"", address_, topic_, why));
  end();
}

void LookupQuery::expire(Now now) {
  if (!over_ && now.mono >= deadline_) give_up("timed out");
}

void LookupQuery::end() {
  over_ = true;
  if (stream_ != io::StreamId::none) host_.net.close(std::exchange(stream_, io::StreamId::none));
}

}  // namespace rq::broker
