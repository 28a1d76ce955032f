// A long text, made row by row over several turns, so that statistics of many Topics hold up nobody who publishes or consumes.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace rq::broker {

class Rendering {
 public:
  virtual ~Rendering() = default;
  Rendering(const Rendering&) = delete;

  // The next part: rows until it has `bytes` of them, so it is longer by one row at most, and shorter only at the end.
  std::string next(std::size_t bytes) {
    while (!done_ && text_.size() < bytes) done_ = !step();
    return std::exchange(text_, {});
  }
  bool done() const { return done_; }

 protected:
  Rendering() = default;
  virtual bool step() = 0;  // adds a row to text_, or nothing; false: it was the last
  std::string text_;

 private:
  bool done_ = false;
};

}  // namespace rq::broker
