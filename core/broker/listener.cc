#include "core/broker/listener.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/probe.h"
#include "core/base/text.h"

namespace rq::broker {

Listener::Listener(io::Host& host) : host_(host) {
  io::bind<&Listener::on_listen>(listen_, this);
  io::bind<&Listener::on_accept>(accept_, this);
}

void Listener::listen(std::string_view address) {
  address_ = address;
  host_.net.listen(listen_, address_);
}

void Listener::on_listen(io::Op& op) {
  if (op.error) {
    failed_ = true;
    const bool unusable = op.error.code == io::Errc::bad_address;
    failure_ = fmt::format("cannot listen on {}: {}", address_,
                           unusable ? "it is in use, or no address of this machine" : io::errc_name(op.error.code));
    return;
  }
  if (closed_) {
    host_.net.close(op.stream());
    return;
  }
  stream_ = op.stream();
  const std::string local = host_.net.local_address(stream_);
  port_ = static_cast<std::uint16_t>(parse_decimal(std::string_view(local).substr(local.rfind(':') + 1)).value_or(0));
}

void Listener::on_accept(io::Op& op) {
  if (closed_) {
    if (!op.error) host_.net.close(op.stream());
    return;
  }
  if (!op.error) {
    failing_ = false;
    accepted_.push_back(op.stream());
    return;
  }
  if (!std::exchange(failing_, true))
    host_.log.log(io::Level::warn, "accept_failed",
                  fmt::format("address=\"{}\" reason=\"{}\" errno={}", address_, io::errc_name(op.error.code), op.error.os));
  RQ_SOMETIMES(op.error.code == io::Errc::no_handles, "broker.accept_out_of_handles");
  retry_ = retry_new_ = true;
}

void Listener::settle(Now now) {
  if (retry_new_) retry_at_ = now.mono + kRetryNs;
  retry_new_ = false;
  if (retry_ && now.mono < retry_at_) return;
  retry_ = false;
  if (!enabled_ || closed_ || !listening() || accept_.in_flight) return;
  host_.net.accept(accept_, stream_);
}

void Listener::close() {
  if (closed_) return;
  closed_ = true;
  retry_ = false;
  for (const io::StreamId stream : accepted_) host_.net.close(stream);
  accepted_.clear();
  if (listening()) host_.net.close(stream_);
}

}  // namespace rq::broker
