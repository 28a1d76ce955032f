#include "sim/link.h"

namespace rq::sim {

Link::Link(io::Host& host) : host_(host) {
  io::bind<&Link::on_connect>(connect_, this);
  io::bind<&Link::on_read>(read_, this);
  io::bind<&Link::on_write>(write_, this);
}

void Link::open(std::string_view address, Instant deadline) {
  RQ_CHECK(!opened_);
  opened_ = true;
  host_.net.connect(connect_, address, deadline);
}

void Link::send(std::string_view bytes) {
  if (bytes.empty() || ended_) return;
  const bool front_busy = pieces_.size() == 1 && (write_.in_flight || written_ > 0);
  if (joinable_ && !pieces_.empty() && !front_busy) {
    pieces_.back().append(bytes);
    return;
  }
  pieces_.emplace_back(bytes);
  joinable_ = true;
}

void Link::send_piece(std::string_view bytes) {
  if (bytes.empty() || ended_) return;
  pieces_.emplace_back(bytes);
  joinable_ = false;
}

void Link::shutdown_write() { half_close_ = true; }

void Link::close() {
  if (ended_ || !opened_) return;
  end(false);
}

void Link::end(bool reset) {
  if (ended_) return;
  ended_ = true;
  reset_ = reset;
  while (pieces_.size() > (write_.in_flight ? 1u : 0u)) pieces_.pop_back();  // the port still reads the first one
  if (stream_ != io::StreamId::none) host_.net.close(stream_);
}

void Link::submit() {
  if (!connected_ || ended_) return;
  if (!write_.in_flight && !pieces_.empty()) {
    const ConstBuf rest = bytes_of(pieces_.front()).subspan(written_);
    host_.net.write_some(write_, stream_, std::span(&rest, 1));
  }
  if (half_close_ && !half_closed_ && pieces_.empty() && !write_.in_flight) {
    half_closed_ = true;
    host_.net.shutdown_write(stream_);
  }
  if (reading && !peer_done_ && !read_.in_flight) host_.net.read_some(read_, stream_, pool_);
}

void Link::on_connect(io::Op& op) {
  if (op.error) return end(false);
  stream_ = op.stream();
  if (ended_) return host_.net.close(stream_);
  connected_ = true;
}

void Link::on_read(io::ReadOp& op) {
  const Slice data = std::move(op.data);
  op.data = Slice();
  if (ended_) return;
  if (op.error) {
    peer_done_ = true;
    return end(op.error.code != io::Errc::eof);
  }
  inbox.append(text_of(data.bytes()));
}

void Link::on_write(io::Op& op) {
  if (ended_) return;
  if (op.error) {
    // What the peer sent before it went away is still read; the read then reports the end.
    pieces_.clear();
    written_ = 0;
    if (!reading) end(true);
    return;
  }
  written_ += op.value;
  RQ_CHECK(written_ <= pieces_.front().size());
  if (written_ < pieces_.front().size()) return;
  pieces_.pop_front();
  written_ = 0;
}

}  // namespace rq::sim
