#include "core/broker/transport.h"

#include <array>
#include <utility>

#include "core/base/check.h"

namespace rq::broker {

void Transport::compress(Kind kind, int level) {
  RQ_CHECK(kind_ == Kind::plain && kind != Kind::plain);
  kind_ = kind;
  encoder_ = kind == Kind::snappy ? codec::snappy_encoder() : codec::deflate_encoder(level);
  decoder_ = kind == Kind::snappy ? codec::snappy_decoder() : codec::deflate_decoder();
}

void Transport::hold(Slice raw) {
  if (!raw.empty()) raw_.push_back(std::move(raw));
}

std::deque<Slice> Transport::take_held() {
  RQ_CHECK(!compressed());
  return std::exchange(raw_, {});
}

Transport::Decoded Transport::decode(ChunkPool& pool) {
  RQ_CHECK(compressed());
  if (failed_) return {Slice(), true};
  if (!holds()) return {};
  Chunk* chunk = pool.take();
  const Slice whole(chunk, chunk->data(), chunk->capacity);
  std::uint32_t made = 0;
  while (holds()) {
    const ConstBuf in = raw_.empty() ? ConstBuf() : raw_.front().bytes();
    const codec::Decoder::Step step = decoder_->decode(in, MutBuf(chunk->data(), chunk->capacity).subspan(made));
    made += static_cast<std::uint32_t>(step.made);
    decoder_full_ = made == chunk->capacity;
    if (step.failed) {
      failed_ = true;
      break;
    }
    if (!raw_.empty()) {
      const auto used = static_cast<std::uint32_t>(step.used);
      raw_.front() = raw_.front().sub(used, raw_.front().size() - used);
      if (raw_.front().empty()) raw_.pop_front();
    }
    if (decoder_full_) break;
  }
  return {whole.sub(0, made), failed_ && made == 0};
}

ConstBuf Transport::encode(Output& output) {
  if (encoded_done_ < encoded_.size()) return bytes_of(encoded_).subspan(encoded_done_);
  std::array<ConstBuf, Output::kBuffersMax> buffers;
  const std::size_t count = output.fill(buffers, kPieceBytes);
  plain_bytes_ = 0;
  for (std::size_t i = 0; i < count; ++i) plain_bytes_ += buffers[i].size();
  RQ_CHECK(plain_bytes_ > 0);
  encoded_.clear();
  encoded_done_ = 0;
  encoder_->encode(std::span<const ConstBuf>(buffers.data(), count), encoded_);
  return bytes_of(encoded_);
}

std::size_t Transport::written(std::size_t bytes) {
  encoded_done_ += bytes;
  RQ_CHECK(encoded_done_ <= encoded_.size());
  if (encoded_done_ < encoded_.size()) return 0;
  encoded_.clear();
  if (encoded_.capacity() > Output::kIdleCapacityBytes) encoded_ = std::string();
  encoded_done_ = 0;
  return std::exchange(plain_bytes_, 0);
}

}  // namespace rq::broker
