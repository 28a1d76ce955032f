// Deadlines of many objects, most of which get one of a few timeouts counted from now: one FIFO lane per distinct timeout,
// appended at its tail, so that arming and disarming cost O(1) and the earliest deadline O(lanes). What does not fit a lane (a
// deadline before its lane's tail, or more distinct timeouts than lanes) goes into an intrusive tree, O(log n). Nothing is
// allocated: the links are members of the objects.
//
//  I1 Deadlines do not decrease along a lane.
//  I2 A node is in at most one place of one DeadlineLanes.
#pragma once

#include <array>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>

#include "core/base/check.h"
#include "core/base/time.h"

namespace rq {

// Base class of what carries a deadline. Not copied while armed.
class DeadlineNode {
 public:
  bool armed() const { return place_ != kIdle; }
  Instant deadline() const { return deadline_; }

 private:
  template <class T>
  friend class DeadlineLanes;
  static constexpr std::int8_t kIdle = -2;
  static constexpr std::int8_t kTree = -1;

  Instant deadline_;
  DeadlineNode* before_ = nullptr;
  DeadlineNode* after_ = nullptr;
  boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                    boost::intrusive::optimize_size<true>>
      tree_hook_;
  std::int8_t place_ = kIdle;  // a lane number, kTree or kIdle

 public:
  struct Earlier {
    bool operator()(const DeadlineNode& a, const DeadlineNode& b) const { return a.deadline_ < b.deadline_; }
  };
};

template <class T>
class DeadlineLanes {
 public:
  static constexpr std::size_t kLanes = 8;

  DeadlineLanes() = default;
  DeadlineLanes(const DeadlineLanes&) = delete;
  DeadlineLanes& operator=(const DeadlineLanes&) = delete;

  // `timeout_ns` names the lane; it should be what the caller added to a time that never goes back.
  void arm(T& object, Instant deadline, std::int64_t timeout_ns) {
    DeadlineNode& node = object;
    RQ_CHECK(!node.armed());
    node.deadline_ = deadline;
    ++size_;
    const int number = lane_for(timeout_ns);
    if (number < 0 || (lanes_[number].tail != nullptr && lanes_[number].tail->deadline_ > deadline)) {
      node.place_ = DeadlineNode::kTree;
      tree_.insert(tree_.end(), node);
      return;
    }
    Lane& lane = lanes_[number];
    lane.timeout_ns = timeout_ns;
    node.place_ = static_cast<std::int8_t>(number);
    node.before_ = lane.tail;
    node.after_ = nullptr;
    (lane.tail != nullptr ? lane.tail->after_ : lane.head) = &node;
    lane.tail = &node;
  }

  void disarm(T& object) {
    DeadlineNode& node = object;
    RQ_CHECK(node.armed());
    --size_;
    if (node.place_ == DeadlineNode::kTree) {
      tree_.erase(tree_.iterator_to(node));
    } else {
      Lane& lane = lanes_[node.place_];
      (node.before_ != nullptr ? node.before_->after_ : lane.head) = node.after_;
      (node.after_ != nullptr ? node.after_->before_ : lane.tail) = node.before_;
    }
    node.place_ = DeadlineNode::kIdle;
  }

  // The object with the earliest deadline, null if there is none. Among equal deadlines the choice depends only on the calls
  // made.
  T* first() {
    DeadlineNode* best = tree_.empty() ? nullptr : &*tree_.begin();
    for (Lane& lane : lanes_)
      if (lane.head != nullptr && (best == nullptr || lane.head->deadline_ < best->deadline_)) best = lane.head;
    return static_cast<T*>(best);
  }
  Instant earliest() const {
    Instant at = tree_.empty() ? Instant::never() : tree_.begin()->deadline_;
    for (const Lane& lane : lanes_)
      if (lane.head != nullptr && lane.head->deadline_ < at) at = lane.head->deadline_;
    return at;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void check_invariants() const {
    std::size_t seen = tree_.size();
    for (std::size_t number = 0; number < kLanes; ++number) {
      const DeadlineNode* before = nullptr;
      for (const DeadlineNode* node = lanes_[number].head; node != nullptr; before = node, node = node->after_, ++seen) {
        RQ_CHECK(node->before_ == before && node->place_ == static_cast<std::int8_t>(number));
        RQ_CHECK(before == nullptr || before->deadline_ <= node->deadline_);
      }
      RQ_CHECK(lanes_[number].tail == before);
    }
    RQ_CHECK(seen == size_);
  }

 private:
  struct Lane {
    std::int64_t timeout_ns = 0;
    DeadlineNode* head = nullptr;
    DeadlineNode* tail = nullptr;
  };
  using Hook = boost::intrusive::member_hook<DeadlineNode, decltype(DeadlineNode::tree_hook_), &DeadlineNode::tree_hook_>;
  using Tree = boost::intrusive::multiset<DeadlineNode, Hook, boost::intrusive::compare<DeadlineNode::Earlier>>;

  // The lane of this timeout, else an empty one, else -1.
  int lane_for(std::int64_t timeout_ns) const {
    int vacant = -1;
    for (int number = 0; number < static_cast<int>(kLanes); ++number) {
      if (lanes_[number].head == nullptr) {
        if (vacant < 0) vacant = number;
      } else if (lanes_[number].timeout_ns == timeout_ns) {
        return number;
      }
    }
    return vacant;
  }

  std::array<Lane, kLanes> lanes_;
  Tree tree_;
  std::size_t size_ = 0;
};

}  // namespace rq
