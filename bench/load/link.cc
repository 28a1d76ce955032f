#include "bench/load/link.h"

#include <algorithm>
#include <utility>

namespace rq::load {

Link::Link(io::Host& host, ChunkPool& pool, std::vector<Link*>& active, std::uint32_t index)
    : host_(host), pool_(pool), active_(active), index_(index) {
  io::bind<&Link::on_connect>(connect_, this);
  io::bind<&Link::on_read>(read_, this);
  io::bind<&Link::on_write>(write_, this);
}

void Link::mark() {
  if (marked_) return;
  marked_ = true;
  active_.push_back(this);
}

void Link::open(std::string_view address, Instant deadline) { host_.net.connect(connect_, address, deadline); }

void Link::send_command(ConstBuf command) {
  RQ_CHECK(!command_pending());
  command_ = command;
  mark();
}

void Link::shutdown_write() {
  half_close_ = true;
  mark();
}

void Link::close() {
  if (!ended_) end({io::Errc::cancelled, 0, "close"});
}

void Link::end(io::Error why) {
  if (ended_) return;
  ended_ = true;
  why_ = why;
  mark();
  if (stream_ != io::StreamId::none) host_.net.close(stream_);
}

void Link::submit() {
  if (!connected_ || ended_) return;
  if (!write_.in_flight && busy_text_.size() + busy_command_ == 0) {
    busy_text_.swap(text_);
    busy_command_bytes_ = std::exchange(command_, {});
    busy_command_ = busy_command_bytes_.size();
    written_ = 0;
  }
  const std::size_t busy = busy_text_.size() + busy_command_;
  if (!write_.in_flight && busy > 0) {
    const std::size_t text_done = std::min(written_, busy_text_.size());
    const ConstBuf pieces[2] = {bytes_of(busy_text_).subspan(text_done), busy_command_bytes_.subspan(written_ - text_done)};
    host_.net.write_some(write_, stream_, pieces);
  }
  if (half_close_ && !half_closed_ && busy == 0) {
    half_closed_ = true;
    host_.net.shutdown_write(stream_);
  }
  if (!read_.in_flight && received_.empty()) host_.net.read_some(read_, stream_, pool_);
}

void Link::on_connect(io::Op& op) {
  if (op.error) return end(op.error);
  stream_ = op.stream();
  if (ended_) return host_.net.close(stream_);
  connected_ = true;
  text_.insert(0, "  V2");
  mark();
}

void Link::on_read(io::ReadOp& op) {
  Slice data = std::move(op.data);
  op.data = Slice();
  if (ended_) return;
  if (op.error) return end(op.error);
  received_ = std::move(data);
  mark();
}

void Link::on_write(io::Op& op) {
  if (ended_) return;
  mark();
  if (op.error) return;  // the read tells the end, after what the server sent before it
  written_ += op.value;
  if (written_ < busy_text_.size() + busy_command_) return;
  busy_text_.clear();
  busy_command_ = 0;
  busy_command_bytes_ = {};
}

}  // namespace rq::load
