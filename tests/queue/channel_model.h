// A simple model of a Channel: one map entry per position and a scan over all of them for every question. The real Channel must
// agree with it after every step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/queue/channel.h"
#include "tests/queue/vector_view.h"

namespace rq::queue::test {

struct ChannelModel {
  struct Flight {
    ConsumerId owner;
    Token token;
    Instant delivered, deadline;
    bool capped;
  };
  struct Item {
    std::optional<Flight> flight;
    bool redeliver = false;
    std::uint16_t attempts = 0;
    std::optional<std::int64_t> target_ms;
    std::optional<MessageView::Due> wait;  // the target, until a reservation has seen it reached
  };

  std::uint64_t gap_max = 65'536;
  Position start = 0;
  bool paused = false;
  std::uint64_t requeues = 0, timeouts = 0;
  std::set<Position> finished;     // above start
  std::map<Position, Item> items;  // in flight or to be offered again

  bool is_finished(Position p) const { return p <= start || finished.count(p) != 0; }
  bool is_fresh(Position p) const { return !is_finished(p) && items.count(p) == 0; }

  Position floor(const VectorView& view) const {
    Position p = start;
    while (p < view.deliverable() && (is_finished(p + 1) || !view.present(p + 1))) ++p;
    while (is_finished(p + 1)) ++p;
    return p;
  }
  std::uint64_t depth(const VectorView& view) const {
    std::uint64_t count = 0;
    for (const auto& [p, meta] : view.messages())
      if (p <= view.deliverable() && !is_finished(p)) ++count;
    return count;
  }
  bool in_window(const VectorView& view, Position p) const {
    const Position low = floor(view);
    return p - low - view.absent_count(low + 1, p) <= gap_max;
  }
  // The position that must be handed out now.
  std::optional<Position> select(const VectorView& view, Now now) {
    if (paused) return std::nullopt;
    for (auto& [p, item] : items)
      if (item.wait && item.wait->reached(now)) item.wait.reset();
    for (auto& [p, item] : items)
      if (item.redeliver && !item.wait && view.present(p) && view.due(view.at(p)).reached(now)) return p;
    for (const auto& [p, meta] : view.messages()) {
      if (p > view.deliverable()) break;
      if (!is_fresh(p)) continue;
      if (!in_window(view, p)) break;
      if (view.due(meta).reached(now)) return p;
    }
    return std::nullopt;
  }
  // When time alone would change something, after select() gave nothing.
  Instant next_change(const VectorView& view, Now now) const {
    Instant at = Instant::never();
    const auto meet = [&](const MessageView::Due& due) {
      at = std::min({at, due.mono, now.mono + std::max<std::int64_t>(0, due.wall.ns - now.wall.ns)});
    };
    for (const auto& [p, item] : items) {
      if (item.flight) at = std::min(at, item.flight->deadline);
      if (item.redeliver && !paused && view.present(p)) meet(item.wait ? *item.wait : view.due(view.at(p)));
    }
    for (const auto& [p, meta] : view.messages())
      if (!paused && is_fresh(p) && in_window(view, p)) meet(view.due(meta));
    return at;
  }
  void finish(Position p) {
    items.erase(p);
    finished.insert(p);
  }
  void finish_through(Position through) {
    for (Position p = start + 1; p <= through; ++p) finished.insert(p);
    items.erase(items.begin(), items.upper_bound(through));
  }
  void offer(Position p) {
    Item& item = items.at(p);
    item.flight.reset();
    item.redeliver = true;
  }
};

}  // namespace rq::queue::test
