#include "core/broker/lookup_names.h"

#include <algorithm>

namespace rq::broker {
namespace {

std::string command(std::string_view verb, std::string_view topic, std::string_view channel) {
  std::string line(verb);
  line.append(1, ' ').append(topic);
  if (!channel.empty()) line.append(1, ' ').append(channel);
  return line.append(1, '\n');
}

}  // namespace

void LookupNames::remove_topic(std::string_view topic, const Channels& channels, Commands& out) {
  for (const std::string& channel : channels) out.push_back(command("UNREGISTER", topic, channel));
  out.push_back(command("UNREGISTER", topic, {}));
}

void LookupNames::update_channels(std::string_view topic, Channels& known, const queue::TopicStats& now, Commands& out) {
  const auto stands = [&](const std::string& name) {
    const auto at = std::lower_bound(now.channels.begin(), now.channels.end(), name,
                                     [](const queue::ChannelStats& row, const std::string& wanted) { return row.name < wanted; });
    return at != now.channels.end() && at->name == name;
  };
  for (auto at = known.begin(); at != known.end();) {
    if (stands(*at)) {
      ++at;
      continue;
    }
    out.push_back(command("UNREGISTER", topic, *at));
    at = known.erase(at);
  }
  for (const queue::ChannelStats& row : now.channels)
    if (known.insert(row.name).second) out.push_back(command("REGISTER", topic, row.name));
}

void LookupNames::update(const std::vector<queue::TopicStats>& topics, Commands& out, std::vector<std::string>& fresh) {
  auto known = topics_.begin();
  for (const queue::TopicStats& topic : topics) {
    for (; known != topics_.end() && known->first < topic.name; known = topics_.erase(known))
      remove_topic(known->first, known->second, out);
    if (known == topics_.end() || known->first != topic.name) {
      known = topics_.emplace_hint(known, topic.name, Channels());
      fresh.push_back(topic.name);
      if (topic.channels.empty()) out.push_back(command("REGISTER", topic.name, {}));
    }
    update_channels(topic.name, known->second, topic, out);
    ++known;
  }
  for (; known != topics_.end(); known = topics_.erase(known)) remove_topic(known->first, known->second, out);
}

void LookupNames::remove(std::string_view topic, std::string_view channel, Commands& out) {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return;
  if (channel.empty()) {
    remove_topic(found->first, found->second, out);
    topics_.erase(found);
    return;
  }
  const auto at = found->second.find(channel);
  if (at == found->second.end()) return;
  out.push_back(command("UNREGISTER", topic, channel));
  found->second.erase(at);
}

bool LookupNames::next(Walk& walk, std::string& line) const {
  auto topic = walk.begun ? topics_.lower_bound(walk.topic) : topics_.begin();
  if (walk.begun && topic != topics_.end() && topic->first == walk.topic) {
    const auto channel = topic->second.upper_bound(walk.channel);
    if (channel != topic->second.end()) {
      walk.channel = *channel;
      line = command("REGISTER", walk.topic, walk.channel);
      return true;
    }
    ++topic;
  }
  if (topic == topics_.end()) return false;
  walk.begun = true;
  walk.topic = topic->first;
  walk.channel = topic->second.empty() ? std::string() : *topic->second.begin();
  line = command("REGISTER", walk.topic, walk.channel);
  return true;
}

std::uint64_t LookupNames::count() const {
  std::uint64_t count = topics_.size();
  for (const auto& [topic, channels] : topics_) count += channels.size();
  return count;
}

}  // namespace rq::broker
