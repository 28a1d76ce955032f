#include "core/broker/live_output.h"

#include <array>
#include <utility>

#include "core/base/check.h"

namespace rq::broker {

void LiveOutput::message(std::string header, Slice body) {
  RQ_CHECK(!has_message_);
  has_message_ = true;
  header_ = std::move(header);
  body_ = std::move(body);
}

void LiveOutput::drop_message() {
  RQ_CHECK(!in_message_);
  has_message_ = false;
  header_.clear();
  body_ = Slice();
}

bool LiveOutput::submit(io::Net& net, io::StreamId stream, io::Op& op) {
  if (op.in_flight) return false;
  const bool fresh = !in_message_ && sending_.empty();
  if (fresh && !staged_.empty()) {
    sending_ = std::exchange(staged_, {});
  } else if (fresh && has_message_) {
    in_message_ = true;
  } else if (fresh) {
    return false;
  }
  std::array<ConstBuf, 2> parts;
  std::size_t count = 0;
  std::size_t skip = done_;
  const auto add = [&](ConstBuf part) {
    const std::size_t left_out = std::min(skip, part.size());
    skip -= left_out;
    if (left_out < part.size()) parts[count++] = part.subspan(left_out);
  };
  if (in_message_) {
    add(bytes_of(header_));
    add(body_.bytes());
  } else {
    add(bytes_of(sending_));
  }
  net.write_some(op, stream, std::span<const ConstBuf>(parts.data(), count));
  return fresh;
}

bool LiveOutput::advance(std::uint64_t bytes) {
  done_ += bytes;
  const std::size_t total = in_message_ ? header_.size() + body_.size() : sending_.size();
  RQ_CHECK(done_ <= total);
  if (done_ < total) return false;
  done_ = 0;
  sending_.clear();
  if (!std::exchange(in_message_, false)) return false;
  has_message_ = false;
  header_.clear();
  body_ = Slice();
  return true;
}

}  // namespace rq::broker
