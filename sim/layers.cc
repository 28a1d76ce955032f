#include "sim/layers.h"

#include <utility>

namespace rq::sim {
namespace {

std::string_view name_of(Layers::Layer layer) {
  switch (layer) {
    case Layers::Layer::tls:
      return "tls_v1";
    case Layers::Layer::snappy:
      return "snappy";
    case Layers::Layer::deflate:
      break;
  }
  return "deflate";
}

}  // namespace

bool decode_into(codec::Decoder& decoder, std::string_view bytes, std::string& out) {
  std::string room(64 * 1024, '\0');
  ConstBuf in = bytes_of(bytes);
  for (;;) {
    const codec::Decoder::Step step = decoder.decode(in, std::as_writable_bytes(std::span(room)));
    out.append(room, 0, step.made);
    in = in.subspan(step.used);
    if (step.failed) return false;
    if (in.empty() && step.made < room.size()) return true;
  }
}

void Layers::draw(Random& random) {
  answer_awaited_ = true;
  const std::uint64_t kind = random.below(5);
  if (kind >= 2) todo_.push_back(Layer::tls);
  if (kind != 2) todo_.push_back(kind % 2 == 0 ? Layer::snappy : Layer::deflate);
}

std::string Layers::wish() const {
  if (!answer_awaited_) return "";
  std::string fields = R"(,"feature_negotiation":true)";
  for (const Layer layer : todo_) fields.append(",\"").append(name_of(layer)).append("\":true");
  return fields;
}

bool Layers::receive(std::string& inbox) {
  received_.append(inbox);
  inbox.clear();
  if (tls_awaited_) {
    const std::size_t feed = received_.find('\n');
    if (feed == std::string::npos) return true;
    if (received_.substr(0, feed) != "TLS ready") return false;
    received_.erase(0, feed + 1);
    tls_awaited_ = false;
  }
  const std::string bytes = std::exchange(received_, {});
  if (decoder_ != nullptr) return decode_into(*decoder_, bytes, plain);
  plain.append(bytes);
  return true;
}

std::string Layers::on_frame(const Frame& frame, bool& agreed) {
  agreed = frame.type == 0;
  if (!agreed) return "";
  if (!answer_awaited_) {
    agreed = ok_awaited_ && frame.payload == "OK";
    ok_awaited_ = false;
    return begin_next();
  }
  answer_awaited_ = false;
  for (const Layer layer : todo_)
    agreed &= frame.payload.find("\"" + std::string(name_of(layer)) + "\":true") != std::string::npos;
  return begin_next();
}

std::string Layers::begin_next() {
  if (todo_.empty()) return "";
  const Layer layer = todo_.front();
  todo_.pop_front();
  ok_awaited_ = true;
  received_ = std::exchange(plain, {});
  if (layer == Layer::tls) {
    tls_awaited_ = true;
    return "TLS hello sim\n";
  }
  encoder_ = layer == Layer::snappy ? codec::snappy_encoder() : codec::deflate_encoder(6);
  decoder_ = layer == Layer::snappy ? codec::snappy_decoder() : codec::deflate_decoder();
  return "";
}

std::string Layers::encode(std::string_view bytes) {
  if (encoder_ == nullptr) return std::string(bytes);
  std::string out;
  const ConstBuf piece = bytes_of(bytes);
  encoder_->encode(std::span(&piece, 1), out);
  return out;
}

}  // namespace rq::sim
