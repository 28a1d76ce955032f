#include "core/queue/access.h"

#include <map>
#include <utility>

namespace rq::queue {
namespace {

bool active(const std::map<std::string, std::int64_t>& fences, const std::string& key, std::int64_t now_ms) {
  const auto found = fences.find(key);
  return found != fences.end() && found->second > now_ms;
}

}  // namespace

void Access::update() {
  open_ = ready_ && blocked_.empty() && fences_.topics.empty() && fences_.channels.empty() && fences_.local_channels.empty();
}

void Access::set_ready(bool ready) {
  ready_ = ready;
  update();
}

void Access::set_fences(storage::ManagementFences fences) {
  fences_ = std::move(fences);
  update();
}

void Access::block(std::string_view topic) {
  blocked_.emplace(topic);
  update();
}

void Access::unblock(std::string_view topic) {
  const auto found = blocked_.find(topic);
  if (found != blocked_.end()) blocked_.erase(found);
  update();
}

bool Access::fenced(std::string_view topic, WallTime now) const { return active(fences_.topics, std::string(topic), now.ms()); }

Code Access::look_up(std::string_view topic, std::string_view channel, WallTime now) const {
  if (!ready_ || blocked(topic)) return Code::management_unavailable;
  if (fenced(topic, now)) return Code::topic_tombstoned;
  if (channel.empty() || (fences_.channels.empty() && fences_.local_channels.empty())) return Code::ok;
  const std::string key = storage::fence_key(topic, channel);
  const bool fenced = active(fences_.channels, key, now.ms()) || active(fences_.local_channels, key, now.ms());
  return fenced ? Code::channel_tombstoned : Code::ok;
}

}  // namespace rq::queue
