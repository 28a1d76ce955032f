#include "core/broker/output.h"

#include <utility>

#include "core/base/check.h"

namespace rq::broker {

void Output::Spare::keep(Buffers buffers) {
  buffers.bytes.clear();
  buffers.pieces.clear();
  buffers.handed.clear();
  if (free_.size() < kBuffersMax && buffers.bytes.capacity() <= kBytesMax) free_.push_back(std::move(buffers));
}

void Output::Spare::lend(Buffers& buffers) {
  if (free_.empty()) return;
  std::swap(buffers, free_.back());
  free_.pop_back();
}

void Output::Batch::clear(Spare& spare) {
  bytes.clear();
  pieces.clear();
  handed.clear();
  if (bytes.capacity() > kIdleCapacityBytes || pieces.capacity() * sizeof(Piece) > kIdleCapacityBytes ||
      handed.capacity() * sizeof(Handed) > kIdleCapacityBytes)
    spare.keep(std::exchange(static_cast<Buffers&>(*this), Buffers{}));
  total = answer_bytes = 0;
  body_bytes = 0;
  heartbeat = false;
  expires = kNoExpiry;
  expires_mono = Instant::never();
}

void Output::joined(std::size_t from) {
  const std::size_t length = staged_.bytes.size() - from;
  staged_.total += length;
  if (!staged_.pieces.empty() && staged_.pieces.back().body.empty()) {
    staged_.pieces.back().length += length;
    return;
  }
  Piece piece;
  piece.at = from;
  piece.length = length;
  staged_.pieces.push_back(std::move(piece));
}

void Output::frame(nsq::FrameType type, std::string_view payload) {
  const std::size_t from = staged_.bytes.size();
  nsq::put_frame(staged_.bytes, type, payload);
  staged_.answer_bytes += staged_.bytes.size() - from;
  joined(from);
}

void Output::heartbeat() {
  const std::size_t from = staged_.bytes.size();
  nsq::put_frame(staged_.bytes, nsq::FrameType::response, nsq::kHeartbeat);
  staged_.heartbeat = true;
  joined(from);
}

void Output::message(const queue::Delivery& delivery, Now now) {
  if (staged_.total == 0) spare_.lend(staged_);
  const std::size_t from = staged_.bytes.size(), begins = staged_.total;
  const std::uint32_t body_bytes = delivery.body.size();
  nsq::put_message_header(staged_.bytes, delivery.timestamp_ns, delivery.attempts, delivery.id, body_bytes);
  if (body_bytes <= kCopyBytesMax) put_bytes(staged_.bytes, delivery.body.bytes());
  joined(from);
  if (body_bytes > kCopyBytesMax) {
    Piece piece;
    piece.body = delivery.body;
    piece.length = body_bytes;
    staged_.total += body_bytes;
    staged_.pieces.push_back(std::move(piece));
  }
  staged_.handed.push_back({delivery.id, delivery.token, begins});
  staged_.body_bytes += body_bytes;
  if (delivery.expires == kNoExpiry) return;
  staged_.expires = std::min(staged_.expires, delivery.expires);
  staged_.expires_mono = std::min(staged_.expires_mono, now.mono + (delivery.expires.ns - now.wall.ns));
}

bool Output::begin() {
  if (writing_.total != 0 || staged_.total == 0) return false;
  std::swap(staged_, writing_);
  done_ = piece_ = piece_done_ = submitted_ = 0;
  return true;
}

std::size_t Output::fill(std::span<ConstBuf> out, std::size_t bytes_max) {
  std::size_t count = 0;
  submitted_ = done_;
  std::size_t skip = piece_done_;
  for (std::size_t i = piece_; i < writing_.pieces.size() && count < out.size() && bytes_max > 0; ++i) {
    const Piece& piece = writing_.pieces[i];
    const ConstBuf whole =
        piece.body.empty() ? bytes_of(std::string_view(writing_.bytes).substr(piece.at, piece.length)) : piece.body.bytes();
    const std::size_t bytes = std::min(whole.size() - skip, bytes_max);
    out[count++] = whole.subspan(skip, bytes);
    submitted_ += bytes;
    bytes_max -= bytes;
    skip = 0;
  }
  return count;
}

Output::Progress Output::advance(std::size_t bytes) {
  RQ_CHECK(bytes <= writing_.total - done_);
  Progress progress;
  done_ += bytes;
  while (piece_ < writing_.pieces.size()) {
    const std::size_t left = writing_.pieces[piece_].length - piece_done_;
    if (bytes < left) {
      piece_done_ += bytes;
      break;
    }
    bytes -= left;
    ++piece_;
    piece_done_ = 0;
    progress.piece = true;
  }
  if (done_ == writing_.total) {
    progress.body_bytes = writing_.body_bytes;
    writing_.clear(spare_);
    done_ = 0;
    progress.batch = true;
  }
  return progress;
}

std::vector<Output::Handed> Output::abandon() {
  std::vector<Handed> never_sent = std::move(staged_.handed);
  for (const Handed& handed : writing_.handed)
    if (handed.from >= submitted_) never_sent.push_back(handed);
  staged_.clear(spare_);
  return never_sent;
}

}  // namespace rq::broker
