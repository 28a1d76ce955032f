#include "bench/load/body.h"

#include "core/base/check.h"

namespace rq::load {

Body::Body(std::uint32_t bytes, std::uint64_t nonce) : model_(bytes, '\0') {
  RQ_CHECK(bytes > 0);
  for (std::size_t i = 0; i < model_.size(); ++i) model_[i] = static_cast<char>('a' + (i * 7 + i / 13) % 26);
  auto* at = reinterpret_cast<std::byte*>(model_.data());
  if (number_at() > 0) store64(at, nonce);
  write_number(at, 0);
}

void Body::write_number(std::byte* body, std::uint64_t number) const {
  if (numbered()) store64(body + number_at(), number);
}

Body::Kind Body::look(ConstBuf body, std::uint64_t& number) const {
  const std::string_view text = text_of(body), model = model_;
  if (number_at() > 0 && text.substr(0, 8) != model.substr(0, 8)) return Kind::foreign;
  if (text.size() != model.size() || text.substr(pattern_at()) != model.substr(pattern_at())) return Kind::altered;
  if (numbered()) number = load64(body.data() + number_at());
  return Kind::ours;
}

Command::Command(std::string_view topic, const Body& body, std::uint32_t batch_size)
    : topic_(topic), body_(body), batched_(batch_size > 1) {}

std::uint64_t Command::bytes_of(std::uint64_t topic_bytes, std::uint64_t message_bytes, std::uint64_t batch_size) {
  return 6 + topic_bytes + 8 + batch_size * (4 + message_bytes);
}

void Command::build(std::uint32_t count) {
  built_ = count;
  text_.clear();
  text_.reserve(bytes_of(topic_.size(), body_.bytes(), count));
  text_.append(batched_ ? "MPUB " : "PUB ").append(topic_).append("\n");
  if (batched_) {
    put32(text_, 4 + count * (4 + body_.bytes()));
    put32(text_, count);
  }
  first_body_ = text_.size() + 4;
  for (std::uint32_t i = 0; i < count; ++i) {
    put32(text_, body_.bytes());
    text_.append(body_.model());
  }
}

ConstBuf Command::set(std::uint64_t first, std::uint32_t count) {
  RQ_CHECK(count > 0 && (batched_ || count == 1));
  if (count != built_) build(count);
  auto* at = reinterpret_cast<std::byte*>(text_.data()) + first_body_;
  for (std::uint32_t i = 0; i < count; ++i, at += 4 + body_.bytes()) body_.write_number(at, first + i);
  return rq::bytes_of(text_);
}

}  // namespace rq::load
