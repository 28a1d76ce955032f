#include "core/storage/space_reserve.h"

#include <string>

#include "core/storage/script.h"

namespace rq::storage {

SpaceReserve::SpaceReserve(io::Host& host, std::uint64_t bytes) : host_(host), bytes_(bytes) {
  io::bind<&SpaceReserve::on_reserved>(op_, this);
}

void SpaceReserve::hold(io::FileId lock, Now now) {
  if (held_ || op_.in_flight || now.mono < next_ || lock == io::FileId::none) return;
  next_ = now.mono + kRetryNs;
  taking_ = true;
  host_.disk.reserve(op_, lock, bytes_);
}

void SpaceReserve::give_back(io::FileId lock) {
  if (!held_ || op_.in_flight) return;
  held_ = taking_ = false;
  host_.log.log(io::Level::warn, "reserve_given_back", "bytes=" + std::to_string(bytes_));
  host_.disk.reserve(op_, lock, 0);
}

void SpaceReserve::on_reserved(io::Op& op) {
  held_ = taking_ && !op.error && op.value == bytes_;
  if (held_ || !taking_ || reported_) return;
  reported_ = true;
  host_.log.log(io::Level::warn, "reserve_unavailable",
                "reason=\"" + (op.error ? describe(op.error) : std::string("not supported by the file system")) + "\"");
}

}  // namespace rq::storage
