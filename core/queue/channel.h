// One Channel: a cursor over its Topic's log, and the state of every position between its ack floor and its cursor (page 30
// section 3). A pure machine: no disk, no sockets. Durable changes come out as WAL commands; the Topic appends them and tells the
// Channel how far they are durable.
//
// Invariants (checked by check_invariants): I-18, I-19, I-20 of page 30.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/time.h"
#include "core/queue/view.h"
#include "core/storage/image.h"
#include "core/storage/wal.h"  // storage::WalCommand

namespace rq::queue {

enum class ConsumerId : std::uint64_t { none = 0, broker = ~std::uint64_t{0} };
using Token = std::uint64_t;  // delivery token (page 30 section 1.5), from a process-wide counter

struct ChannelSettings {
  std::uint64_t max_ack_gap = 65'536;
  std::uint32_t feature_level = 1;
  // Delayed fresh messages remembered one by one; all beyond are one pair of position and time (I-24).
  std::uint32_t deferred_near = 512;
};

struct Reservation {
  MessageMeta message;
  Token token = 0;
  std::uint16_t attempts = 0;  // after this reservation; the value on the wire
};

enum class Reserve {
  reserved,
  none,     // nothing may be handed out now; next_deadline() says when time alone changes that
  loading,  // a metadata page is needed first; try again when it arrived
};

enum class Held { ok, not_in_flight, not_owner };  // page 10 section 2.4: FIN / REQ / TOUCH reasons

class Channel {
 public:
  // A Channel found on disk, or a new one: then image.barrier is its start and the rest is empty. Ephemeral Channels
  // produce no WAL commands. `tokens` is the process-wide counter.
  Channel(storage::ChannelImage image, bool ephemeral, const ChannelSettings& settings, Token& tokens);
  ~Channel();

  const std::string& name() const;
  bool ephemeral() const;
  bool paused() const;

  // --- reservation (page 30 section 3.3). The lease ends at now.mono + lease_ns. Pausing is checked here for the Channel; the
  // Topic checks its own pause. `owner` is the consumer that will get it.
  Reserve reserve(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out);
  // Takes a reservation back that was never handed over: attempts -1, offered again. False if the token is not current.
  bool cancel(MessageId id, Token token);
  // The consumer is gone: everything it holds is offered again, attempts kept. Returns how many.
  std::size_t release_all(ConsumerId owner);
  std::uint64_t held_by(ConsumerId owner) const;

  // --- consumer commands. On Held::ok the effect is applied at once (I-31) and `out` holds the command to append (none for an
  // ephemeral Channel); the answer waits for its durability, which is the Topic's business.
  Held finish(ConsumerId owner, MessageId id, std::optional<storage::WalCommand>& out, MessageMeta* meta = nullptr);
  // delay_ms is already clamped to 0..max_defer_ms; the target is now.wall + delay, and in this process the earlier of wall and
  // steady.
  Held requeue(ConsumerId owner, MessageId id, std::int64_t delay_ms, Now now, std::optional<storage::WalCommand>& out);
  // New deadline min(now + timeout_ns, delivered + max_timeout_ns) (D-07).
  Held touch(ConsumerId owner, MessageId id, Now now, std::int64_t timeout_ns, std::int64_t max_timeout_ns);
  // The lease ends at `limit` at the latest. No effect on what is not in flight.
  void cap_lease(MessageId id, Instant limit);
  std::optional<std::int64_t> timestamp_in_flight(MessageId id) const;  // nanoseconds
  // The Broker itself takes over a reservation, for a dead-letter move: no lease ends it any more, and no consumer's leaving.
  // False if the token is not current.
  bool take_over(MessageId id, Token token);
  // Gives that back: offered again, attempts kept. False if it was emptied or evicted meanwhile.
  bool release(MessageId id, Token token);
  // Finish by position for the Broker's own finishes (sampling). False if already finished.
  bool finish_position(Position position, MessageId id, std::optional<storage::WalCommand>& out);

  // --- time. Settles every overdue in-flight entry (steady clock). `released` gets one (owner, id) per entry. At feature level
  // >= 2 `out` holds the cumulative Timeout command when anything timed out.
  struct Released {
    ConsumerId owner;
    MessageId id;
  };
  void expire(Now now, std::vector<Released>& released, std::optional<storage::WalCommand>& out);
  // Earliest steady instant at which expire() or reserve() can do something that it cannot do now; wall deadlines are
  // mapped through `now`. Instant::never() if only an event can.
  Instant next_deadline(Now now) const;

  // --- administration; the returned command is appended by the Topic (none for an ephemeral Channel or no change)
  std::optional<storage::WalCommand> set_paused(bool paused);
  // All positions <= through are finished; tokens become void. `released` as in expire().
  std::optional<storage::WalCommand> empty_through(Position through, std::vector<Released>& released);
  std::optional<storage::WalCommand> evict_through(Position through, std::vector<Released>& released);

  // --- watermarks of the log
  // Positions vanished from the log (collected while this ephemeral Channel lagged, or lost): count them as finished.
  void drop_absent(const MessageView& view);
  // Newest positions that this Channel does not get (D-21); above all that it has met.
  void drop(Position first, Position last);
  // From here on finish() and finish_position() leave the position in take_finished(): a log in memory lets go of it.
  void report_finished();
  std::vector<Position> take_finished();

  // --- numbers (page 30 section 3.10)
  Position ack_floor() const;
  Position cursor() const;
  std::optional<Position> lowest_in_flight() const;
  std::uint64_t ack_gap() const;                                         // number of sparse acks
  std::uint64_t depth(const MessageView& view) const;                    // native: includes in-flight and deferred
  std::uint64_t depth_to(const MessageView& view, Position last) const;  // the same with all positions <= last
  std::uint64_t in_flight_count() const;
  // Requeued with a target in the future (without delayed fresh ones, which a DeferredScan counts).
  std::uint64_t requeued_future_count(Now now) const;
  bool is_finished(Position position) const;  // or dropped
  // True if `position` is neither finished nor in flight nor in the redelivery set.
  bool is_fresh(Position position) const;
  std::uint64_t message_count(const MessageView& view) const;
  std::uint64_t requeue_count() const;
  std::uint64_t timeout_count() const;
  bool blocked_by_ack_window(const MessageView& view) const;  // D-75

  // --- persistence: the state as a checkpoint, in-flight attempts included. Also the source of golden tests.
  storage::ChannelImage image() const;
  // Counters changed since the last image() was stored without a WAL record (D-25).
  bool counters_dirty() const;
  void counters_stored();
  // The same when the stored image is known: its timeout_count.
  void counters_stored(std::uint64_t timeout_count);
  // What statistics show (D-25): the part of timeout_count() that no crash takes back.
  std::uint64_t stored_timeout_count() const;

  void digest(Hasher& hasher) const;
  void check_invariants(const MessageView& view) const;  // RQ_CHECK

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rq::queue
