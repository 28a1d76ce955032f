#include "io/real/lookups.h"

#include <algorithm>
#include <utility>

namespace rq::real {

struct Lookups::Question final : Job {
  struct Waiting {
    io::Op* connect;
    Instant deadline;
  };
  Question(Lookups& owner_, HostPort name_) : owner(owner_), name(std::move(name_)) {}
  void execute() noexcept override { address = owner.resolver_(name); }
  void finish() override { owner.finish(*this); }

  Lookups& owner;
  const HostPort name;
  std::optional<SocketAddress> address;
  std::vector<Waiting> waiting;  // the loop's, while a worker asks, too
};

Lookups::Lookups(io::Turn& turn, Resolver resolver, Found found)
    : turn_(turn), resolver_(std::move(resolver)), found_(std::move(found)) {}

Lookups::~Lookups() = default;

Lookups::Question* Lookups::find(const HostPort& name) {
  for (Question* question : running_) {
    if (question->name == name) return question;
  }
  for (const auto& question : queued_) {
    if (question->name == name) return question.get();
  }
  return nullptr;
}

void Lookups::add(HostPort name, io::Op& connect, Instant deadline) {
  Question* question = find(name);
  if (question == nullptr) {
    queued_.push_back(std::make_unique<Question>(*this, std::move(name)));
    question = queued_.back().get();
  }
  question->waiting.push_back({&connect, deadline});
  submit();
}

void Lookups::submit() {
  while (!queued_.empty() && running_.size() < kRunningMax) {
    running_.push_back(queued_.front().release());
    queued_.erase(queued_.begin());
    pool_->submit(*running_.back());
  }
}

void Lookups::finish(Question& question) {
  std::erase(running_, &question);
  const std::unique_ptr<Question> done(&question);
  submit();
  for (const Question::Waiting& each : done->waiting) {
    if (done->address) {
      found_(*each.connect, *done->address, each.deadline);
    } else {
      turn_.complete(*each.connect, {io::Errc::not_found, 0, "connect"});
    }
  }
}

void Lookups::expire(Instant now) {
  const auto let_go = [&](Question& question) {
    std::erase_if(question.waiting, [&](const Question::Waiting& each) {
      if (each.deadline > now) return false;
      turn_.complete(*each.connect, {io::Errc::timed_out, 0, "connect"});
      return true;
    });
    return question.waiting.empty();
  };
  for (Question* question : running_) let_go(*question);
  std::erase_if(queued_, [&](const auto& question) { return let_go(*question); });
}

Instant Lookups::next_deadline() const {
  Instant first = Instant::never();
  const auto look = [&](const Question& question) {
    for (const Question::Waiting& each : question.waiting) first = std::min(first, each.deadline);
  };
  for (const Question* question : running_) look(*question);
  for (const auto& question : queued_) look(*question);
  return first;
}

}  // namespace rq::real
