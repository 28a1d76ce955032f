// Host names on their way to addresses. The resolver blocks, and for long when a name server is silent, so workers ask it.
//
//  I1 Every connect that waits is answered once: with an address, not_found, or timed_out at its deadline, whatever the resolver
//     does.
//  I2 At most kRunningMax questions are with the workers, which serve the disk as well; one that nobody waits for any more keeps
//     its place until the resolver has come back. Nobody is asked for a name twice at a time.
//  I3 A question that was not asked yet is dropped with the last connect that waited for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/io/turn.h"
#include "io/real/address.h"
#include "io/real/pool.h"

namespace rq::real {

using Resolver = std::function<std::optional<SocketAddress>(const HostPort&)>;  // called from workers

class Lookups {
 public:
  static constexpr std::size_t kRunningMax = 2;
  // Goes on with a connect whose name has an address.
  using Found = std::function<void(io::Op&, const SocketAddress&, Instant deadline)>;

  Lookups(io::Turn& turn, Resolver resolver, Found found);
  ~Lookups();

  void use_pool(Pool& pool) { pool_ = &pool; }
  bool usable() const { return pool_ != nullptr; }
  void add(HostPort name, io::Op& connect, Instant deadline);
  void expire(Instant now);
  Instant next_deadline() const;

 private:
  struct Question;
  Question* find(const HostPort& name);
  void submit();
  void finish(Question& question);

  io::Turn& turn_;
  const Resolver resolver_;
  const Found found_;
  Pool* pool_ = nullptr;
  std::vector<std::unique_ptr<Question>> queued_;
  std::vector<Question*> running_;  // the pool's until they have finished
};

}  // namespace rq::real
