// The names as nsqlookupd servers hear of them, by themselves.
#include "core/broker/lookup_names.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace rq::broker::test {
namespace {

using Commands = LookupNames::Commands;
using Names = std::set<std::string>;                          // "topic" and "topic channel"
using Topics = std::map<std::string, std::set<std::string>>;  // what a Broker has

std::vector<queue::TopicStats> rows(const Topics& topics) {
  std::vector<queue::TopicStats> out;
  for (const auto& [name, channels] : topics) {
    out.emplace_back().name = name;
    for (const std::string& channel : channels) out.back().channels.emplace_back().name = channel;
  }
  return out;
}

Names names_of(const Topics& topics) {
  Names out;
  for (const auto& [name, channels] : topics) {
    out.insert(name);
    for (const std::string& channel : channels) out.insert(name + " " + channel);
  }
  return out;
}

// As nsqlookupd takes a line: a Channel brings its Topic, a Topic takes its Channels with it.
void obey(Names& server, std::string_view line) {
  line.remove_suffix(1);
  const bool registers = line.starts_with("REGISTER ");
  const std::string name(line.substr(line.find(' ') + 1));
  const std::string topic = name.substr(0, name.find(' '));
  if (registers) {
    server.insert(topic);
    server.insert(name);
    return;
  }
  std::erase_if(server, [&](const std::string& each) { return each == name || each.starts_with(name + " "); });
}

TEST(LookupNames, DifferencesBecomeCommands) {
  LookupNames names;
  Commands out;
  std::vector<std::string> fresh;
  names.update(rows({{"a", {}}, {"b", {"x", "y"}}}), out, fresh);
  EXPECT_EQ(out, (Commands{"REGISTER a\n", "REGISTER b x\n", "REGISTER b y\n"}));
  out.clear();
  names.update(rows({{"a", {"n"}}, {"b", {"y", "z"}}, {"c", {}}}), out, fresh);
  EXPECT_EQ(out, (Commands{"REGISTER a n\n", "UNREGISTER b x\n", "REGISTER b z\n", "REGISTER c\n"}));
  EXPECT_EQ(names.count(), 6u);
  EXPECT_EQ(fresh, (std::vector<std::string>{"a", "b", "c"}));
  out.clear();
  names.update(rows({{"b", {}}}), out, fresh);
  EXPECT_EQ(out, (Commands{"UNREGISTER a n\n", "UNREGISTER a\n", "UNREGISTER b y\n", "UNREGISTER b z\n", "UNREGISTER c\n"}));
  out.clear();
  names.remove("b", "none", out);
  names.remove("none", "", out);
  EXPECT_TRUE(out.empty());
}

Topics random_topics() {
  Topics topics;
  for (const int topic : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5)))
    for (const int channel : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4))) {
      std::set<std::string>& channels = topics[std::string(1, static_cast<char>('a' + topic))];
      if (channel > 0) channels.insert(std::string(1, static_cast<char>('w' + channel)));
    }
  return topics;
}

// I2: a walk, and behind it the changes since it began, leave a server with exactly the names, however the two are interleaved;
// so do the changes alone for a server that had everything.
RC_GTEST_PROP(LookupNamesProperties, AWalkAndTheChangesSinceGiveExactlyTheNames, ()) {
  LookupNames names;
  Commands changes;
  std::vector<std::string> fresh;
  Topics topics = random_topics();
  names.update(rows(topics), changes, fresh);
  Names told = names_of(topics), walked;
  changes.clear();
  LookupNames::Walk walk;
  std::string line;
  bool more = true;
  while (more) {
    switch (*rc::gen::inRange(0, 6)) {
      case 4:
        topics = random_topics();
        names.update(rows(topics), changes, fresh);
        break;
      case 5: {
        const std::string topic(1, static_cast<char>('a' + *rc::gen::inRange(0, 5)));
        const std::string channel(static_cast<std::size_t>(*rc::gen::inRange(0, 2)), 'x');
        names.remove(topic, channel, changes);
        const auto found = topics.find(topic);
        if (found != topics.end() && !channel.empty()) found->second.erase(channel);
        if (found != topics.end() && channel.empty()) topics.erase(found);
        break;
      }
      default:
        more = names.next(walk, line);
        if (more) obey(walked, line);
    }
  }
  for (const std::string& change : changes) {
    obey(walked, change);
    obey(told, change);
  }
  RC_ASSERT(walked == names_of(topics));
  RC_ASSERT(told == names_of(topics));
  RC_ASSERT(names.count() == names_of(topics).size());
}

}  // namespace
}  // namespace rq::broker::test
