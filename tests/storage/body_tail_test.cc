// The bodies of one log in memory, against a plain map.
#include "core/storage/body_tail.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

namespace rq::storage {
namespace {

RC_GTEST_PROP(BodyTail, HoldsWhatWasAddedWithoutTheOldest, ()) {
  BodyTail tail;
  std::map<Position, std::string> model;
  Position next = *rc::gen::inRange<Position>(1, 5);
  const int steps = *rc::gen::inRange(1, 100);
  for (int step = 0; step < steps; ++step) {
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        next += *rc::gen::inRange<Position>(1, 4);  // these are not kept
        break;
      case 1: {
        const auto count = *rc::gen::inRange<std::size_t>(0, model.size() + 1);
        tail.drop(static_cast<std::uint32_t>(count));
        model.erase(model.begin(), std::next(model.begin(), static_cast<std::ptrdiff_t>(count)));
        break;
      }
      default: {
        const std::string body = std::to_string(next);
        tail.add(next, Slice::copy_of(bytes_of(body)));
        model[next++] = body;
      }
    }
    for (Position position = 0; position <= next; ++position) {
      const auto expected = model.find(position);
      RC_ASSERT(text_of(tail.find(position).bytes()) == (expected == model.end() ? "" : expected->second));
    }
  }
}

}  // namespace
}  // namespace rq::storage
