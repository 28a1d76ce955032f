#include "core/io/turn.h"

namespace rq::io {

const char* errc_name(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "ok";
    case Errc::eof:
      return "end of stream";
    case Errc::cancelled:
      return "cancelled";
    case Errc::no_space:
      return "no space left";
    case Errc::no_handles:
      return "too many open files";
    case Errc::io:
      return "I/O error";
    case Errc::reset:
      return "connection reset";
    case Errc::refused:
      return "connection refused";
    case Errc::timed_out:
      return "timed out";
    case Errc::not_found:
      return "not found";
    case Errc::exists:
      return "exists";
    case Errc::locked:
      return "locked by another process";
    case Errc::tls:
      return "tls";
    case Errc::denied:
      return "permission denied";
    case Errc::bad_address:
      return "bad address";
  }
  return "unknown";
}

void Turn::complete(Op& op, Error error, std::uint64_t value) {
  RQ_CHECK(op.in_flight && op.next == nullptr);
  op.error = error;
  op.value = value;
  *tail_ = &op;
  tail_ = &op.next;
}

void Turn::abandon() {
  RQ_CHECK(!running_);
  while (head_ != nullptr) {
    Op& op = *head_;
    head_ = op.next;
    op.next = nullptr;
    op.in_flight = false;
  }
  tail_ = &head_;
}

void Turn::run(Shard& shard) {
  RQ_CHECK(!running_);
  running_ = true;
  now_ = {clock_.now(), clock_.wall()};
  ++turns_;
  Op* list = head_;
  head_ = nullptr;
  tail_ = &head_;
  while (list != nullptr) {
    Op& op = *list;
    list = op.next;
    op.next = nullptr;
    op.in_flight = false;
    ++delivered_;
    op.done(op);  // may destroy the op
  }
  shard.expire(now_);
  shard.settle(now_);
  running_ = false;
  waker_.wake_at(shard.next_deadline());
}

}  // namespace rq::io
