#include "core/http/fetch.h"

#include <utility>

#include "core/base/check.h"

namespace rq::http {
namespace {

// Of "host:port", without the brackets of an IPv6 address.
std::string_view host_of(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Fetch::Fetch(io::Host& host, ChunkPool& pool, std::uint64_t body_bytes_max)
    : host_(host), pool_(pool), body_bytes_max_(body_bytes_max), response_(kHeadBytesMax, body_bytes_max) {
  io::bind<&Fetch::on_op>(op_, this);
  io::bind<&Fetch::on_read>(read_, this);
}

void Fetch::start(FetchTarget target, Now now) {
  RQ_CHECK(idle() && !running());
  target_ = std::move(target);
  request_done_ = 0;
  response_ = ResponseParser(kHeadBytesMax, body_bytes_max_);
  deadline_ = now.mono + target_.limit_ns;
  step_ = Step::connecting;
  connect_op_ = true;
  host_.net.connect(op_, target_.address, now.mono + target_.connect_ns);
}

void Fetch::settle(Now) {
  if (!idle()) return;
  switch (step_) {
    case Step::none:
    case Step::connecting:
      break;
    case Step::shaking:
      host_.net.start_tls_client(op_, stream_, host_of(target_.address), deadline_);
      break;
    case Step::writing: {
      const ConstBuf rest = bytes_of(target_.request).subspan(request_done_);
      host_.net.write_some(op_, stream_, std::span(&rest, 1));
      break;
    }
    case Step::reading:
      host_.net.read_some(read_, stream_, pool_);
      break;
  }
}

void Fetch::on_op(io::Op& op) {
  if (std::exchange(connect_op_, false) && !op.error) {
    stream_ = op.stream();
    if (step_ != Step::connecting) return stop();  // given up meanwhile
    step_ = target_.tls ? Step::shaking : Step::writing;
    return;
  }
  if (!running()) return;
  if (op.error) return fail(io::errc_name(op.error.code));
  if (step_ == Step::shaking) {
    step_ = Step::writing;
    return;
  }
  request_done_ += op.value;
  if (request_done_ == target_.request.size()) step_ = Step::reading;
}

void Fetch::on_read(io::ReadOp& op) {
  const Slice data = std::move(op.data);
  if (!running()) return;
  if (op.error && op.error.code != io::Errc::eof) return fail(io::errc_name(op.error.code));
  op.error ? response_.end_of_input() : response_.feed(data.bytes());
  if (response_.stage() == ResponseParser::Stage::failed) return fail("no usable answer");
  if (response_.stage() != ResponseParser::Stage::complete) return;
  stop();
  on_answer(response_.status(), response_.body());
}

void Fetch::expire(Now now) {
  if (running() && now.mono >= deadline_) fail("timed out");
}

void Fetch::fail(std::string_view why) {
  stop();
  on_failure(why);
}

void Fetch::stop() {
  step_ = Step::none;
  deadline_ = Instant::never();
  if (stream_ != io::StreamId::none) host_.net.close(std::exchange(stream_, io::StreamId::none));
}

}  // namespace rq::http
