// The message ledger: what was published, answered, delivered, finished and removed on purpose, and the rules that every history
// must keep whatever crashed in between (page 30: I-58 with I-07, I-09, I-25 to I-28, I-32, I-37 to I-39). A black box: it knows
// only what clients saw, so each rule is stated so that a correct Broker can never break it, however slow the network is.
//
//  L1  a delivered body was attempted on that Topic, byte for byte, and never after a definite refusal
//  L2  an id belongs to one message for ever, and a message has one id and one timestamp in every Channel
//  L3  a FIN whose RDY credit was seen is final
//  L4  acknowledged and unfinished is delivered again: checked by audit() (I-14: acknowledged is durable; I-40: it is still
//      there)
//  L5  one consumer at a time per (Channel, message) within its lease
//  L6  attempts: different for each delivery of one Broker run, never more than there can have been deliveries, kept by REQ and
//      by a clean stop
//  L7  nothing before its delay: DPUB, REQ
//  L8  ids ascend from one answered publish to the next one sent; consecutive inside a request; requests are whole
//  L9  what was acknowledged before Empty is not delivered after its answer
//  L10 never more outstanding than RDY
//  L11 nothing is delivered at or after its deadline while a TTL policy is certainly in force (I-48)
//  L12 what moved to the dead letters was unfinished, and is not delivered again; no client sees the last attempt; a letter is
//      the finish that L4 asks for
//
// The owner reports events in the order of time. Bodies must be unique over the whole history.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/hash.h"
#include "core/base/time.h"

namespace rq::ledger {

using PublishRef = std::uint32_t;
using MessageRef = std::uint32_t;
using ChannelRef = std::uint32_t;
using ConsumerRef = std::uint32_t;  // one subscription of one connection
using RemovalRef = std::uint32_t;

enum class Answer : std::uint8_t {
  waiting,
  ok,
  refused,    // definitely not stored: a later delivery is a finding
  ambiguous,  // stored or not
};
enum class Stop : std::uint8_t {
  clean,
  crash,       // of the process: what was written to a file stays
  power_loss,  // what no barrier covers may be gone
};
enum class Removal : std::uint8_t { empty_channel, delete_channel, delete_topic, empty_topic };

struct Settings {
  std::int64_t transit_ns = 2 * kSecond;  // longest way of a frame from the Broker's decision to the client, disk reads included
  std::int64_t bootstrap_ns = 90 * kSecond;
  std::int64_t zombie_ns = 120 * kSecond;          // longest time that the Broker serves a connection whose client is gone
  std::int64_t delay_slack_ns = 2 * kMillisecond;  // delays are kept in milliseconds
  std::int64_t relaxed_ns =
      0;  // relaxed ack modes: a power loss may take what was answered this long before (page 30 section 2.5)
  // Dead letters: the suffix of their Topics, empty without any; attempts from which on a message moves, 0 without a limit.
  std::string dead_letter_suffix = {};
  std::uint16_t attempts_max = 0;
  // A start may find the target of an interrupted move closed (fences not synchronised): the source comes again beside its
  // letter.
  bool moves_may_wait = false;
  bool wall_is_steady = true;  // false: the wall clock is stepped, so timestamps are not compared with it
  std::size_t findings_max = 16;
};

struct Finding {
  std::string rule;  // "L3"
  std::string text;
  Now at;
};

struct Totals {
  std::uint64_t publishes = 0, messages = 0, acknowledged = 0, refused = 0, ambiguous = 0;
  std::uint64_t deliveries = 0, redeliveries = 0, fins = 0, fins_durable = 0, requeues = 0, refusals = 0;
  std::uint64_t removals = 0, runs = 0, clean_stops = 0, suspects = 0;
  std::uint64_t letters = 0;  // dead letters seen
  std::uint64_t audited = 0;  // (Channel, message) pairs that had to be there
};

class Ledger {
 public:
  explicit Ledger(Settings settings = {}) : settings_(settings) {}

  // --- publishing
  PublishRef publish_sent(std::string_view topic, std::span<const std::string> bodies, std::int64_t defer_ns, Now now);
  void publish_answered(PublishRef publish, Answer answer, Now now);

  // --- consuming. `lease_ns`: the message timeout that the connection negotiated.
  void subscribe_sent(std::string_view topic, std::string_view channel, Now now);
  ConsumerRef subscribed(std::string_view topic, std::string_view channel, std::int64_t lease_ns, Now now);
  void ready(ConsumerRef consumer, std::uint32_t rdy);
  void delivered(ConsumerRef consumer, std::string_view id, std::int64_t timestamp_ns, std::uint16_t attempts,
                 std::string_view body, Now now);
  void fin_sent(ConsumerRef consumer, std::string_view id, Now now);
  void req_sent(ConsumerRef consumer, std::string_view id, std::int64_t delay_ns, Now now);
  void command_refused(ConsumerRef consumer, std::string_view id, bool fin, Now now);  // E_FIN_FAILED, or E_REQ_FAILED
  void heard(ConsumerRef consumer, Now now);                                           // any frame arrived
  void doubtful(ConsumerRef consumer);  // its network was cut: no statement about time
  void closed(ConsumerRef consumer, Now now);

  // --- administration
  // Channels that nobody here asked for may be made of that Topic, so which one is its first cannot be known.
  void channels_may_appear(std::string_view topic) { topics_[topic_ref(topic)].had_durable = true; }
  void channel_created(std::string_view topic, std::string_view channel, Now now);  // answered with success over HTTP
  RemovalRef removal_sent(Removal what, std::string_view topic, std::string_view channel, Now now);
  // The Topic's policy; 0: RELIABLE. What may have expired from then on is owed to nobody, until another policy is in force.
  void policy_sent(std::string_view topic, std::int64_t ttl_ns, Now now);
  void policy_in_force(std::string_view topic, std::int64_t ttl_ns, Now now);
  void removal_ended(RemovalRef removal, bool succeeded, Now now);  // false: given up, may or may not have happened

  // --- the Broker and the clock
  // `served`: it had opened its directory, which makes durable what an earlier run left (D-41).
  void broker_stopped(Stop how, Now now, bool served = true);
  void wall_stepped(std::int64_t delta_ns);

  // --- audit: every consumer is subscribed with everything finished, and nothing more arrives. Checks L4 and L8.
  void audit(Now now);

  const std::vector<Finding>& findings() const { return findings_; }
  const Totals& totals() const { return totals_; }
  std::string report() const;
  // Acknowledged messages that some Channel still has to deliver, as far as can be known; 0: drained.
  std::uint64_t missing() const;

 private:
  static constexpr std::uint64_t kSecondHash = 0x6c62272e07bb0142ULL;
  static constexpr std::uint16_t kAttemptsMax = 65'535;

  struct Publish {
    std::uint32_t topic = 0;
    MessageRef first = 0;
    std::uint32_t count = 0;
    Now sent, ended;
    std::int64_t defer_ns = 0;
    std::int64_t jumps_ns = 0;  // forward steps of the wall clock before it was sent
    Answer answer = Answer::waiting;
  };
  struct Record {
    PublishRef publish = 0;
    std::uint32_t bytes = 0;
    std::uint64_t check = 0;  // a second hash of the body
    std::string label;
    std::string id;
    std::int64_t timestamp_ns = 0;
    std::optional<MessageRef> letter_of;  // the message whose dead letter this is
  };
  // What is known about one message in one Channel.
  struct Copy {
    std::uint32_t deliveries = 0;
    std::uint32_t fins_open = 0;  // sent and not refused: it may be finished
    std::uint32_t run = 0;        // of `seen`
    std::vector<std::uint16_t> seen;
    std::uint16_t highest = 0;          // attempts seen in `run`
    std::uint16_t run_start_floor = 0;  // the first delivery of this run shows more than this
    std::uint16_t requeued = 0;         // attempts of the last REQ known to be durable
    bool finished = false;              // durably
    std::uint16_t finished_attempts = 0;
    Instant finished_at;
    bool moved = false;  // its dead letter was seen
    Instant moved_at;
  };
  struct Topic {
    std::string name;
    std::vector<ChannelRef> channels;
    bool letters = false;      // the dead letters of some Channel
    bool had_durable = false;  // creation of a durable Channel was begun
    Instant removed;           // messages sent before are exempt: deleted or emptied
    // Deletions of Channels: when the last durable one went, the next one starts behind everything (page 30 section 5).
    struct Deletion {
      RemovalRef removal;
      Instant sent, until;
    };
    std::vector<Deletion> deletions;
    struct Policy {
      std::int64_t ttl_ns;
      Instant sent, until;  // it may be in force
    };
    std::vector<Policy> policies;
    std::optional<Policy> certain;  // in force since `sent`
  };
  struct Channel {
    std::uint32_t topic = 0;
    std::string name;
    bool ephemeral = false;
    bool first = false;          // of its Topic: owns the whole backlog
    std::optional<Now> created;  // its existence was answered
    Instant removed;             // messages sent before are exempt
    Instant trust_from;          // a removal may be under way until then
    std::optional<Now> emptied;  // last answered Empty: nothing acknowledged before `emptied_sent` may come
    Instant emptied_sent;
    std::uint64_t hidden = 0;  // deliveries that closed connections may have swallowed, per message
    std::vector<ConsumerRef> open;
    std::map<MessageRef, Copy> copies;
  };
  struct Held {
    MessageRef message = 0;
    Instant at;
    std::uint16_t attempts = 0;
    enum class Pending : std::uint8_t { none, fin, req } pending = Pending::none;
    Now sent;
    std::int64_t delay_ns = 0;
    std::uint64_t order = 0;
  };
  struct Suspect {
    Instant at;
    std::string rule, text;
  };
  struct Consumer {
    ChannelRef channel = 0;
    std::int64_t lease_ns = 0;
    Now opened;
    std::uint32_t run = 0;
    std::uint32_t rdy_bound = 0;
    bool open = true, doubtful = false;
    std::map<std::string, Held> held;  // by id
    std::vector<Suspect> suspects;
  };
  struct RemovalRecord {
    Removal what;
    std::string topic, channel;
    Now sent;
  };

  std::uint32_t topic_ref(std::string_view name);
  ChannelRef channel_ref(std::string_view topic, std::string_view name);
  void begin_channel(Channel& channel);
  void find(const char* rule, std::string text, Now now);
  void suspect(Consumer& consumer, const char* rule, std::string text, Now now);
  std::vector<ChannelRef> affected(const RemovalRecord& removal);
  void distrust(Channel& channel, Instant until);
  void doubt_unsynced(Now now);
  std::uint64_t hidden_deliveries(std::int64_t age_ns, std::int64_t lease_ns) const;
  Instant expires(const Publish& publish, std::int64_t ttl_ns) const;
  bool may_have_expired(const Publish& publish, Instant now) const;
  void check_deadline(const Consumer& consumer, MessageRef message, Now now);
  bool lease_certain(const Consumer& consumer, const Held& held, Instant now) const;
  void take_credit(Consumer& consumer, Now now);
  MessageRef letter(const Channel& channel, MessageRef source, std::string_view id, std::int64_t timestamp_ns, Now now);
  void check_letter(const Channel& channel, MessageRef source, Now now);
  bool untouched(const Channel& channel) const;
  void check_identity(const Channel& channel, MessageRef ref, std::string_view id, std::int64_t timestamp_ns, Now now);
  void check_copy(ConsumerRef ref, MessageRef message, std::uint16_t attempts, Now now);
  void check_holders(ConsumerRef ref, MessageRef message, std::uint16_t attempts, Now now);
  bool owed(const Channel& channel, const Publish& publish) const;
  void audit_order(Now now);
  void audit_whole(const Channel& channel, Now now);
  std::string describe(const Channel& channel, MessageRef message) const;

  Settings settings_;
  Totals totals_;
  std::vector<Finding> findings_;
  std::vector<Publish> publishes_;
  std::vector<Record> messages_;
  std::unordered_map<std::uint64_t, MessageRef> by_body_;
  std::unordered_map<std::string, MessageRef> by_id_;
  std::vector<Topic> topics_;
  std::vector<Channel> channels_;
  std::vector<Consumer> consumers_;
  std::vector<RemovalRecord> removals_;
  std::uint32_t run_ = 0;
  Stop last_stop_ = Stop::clean;
  Instant power_lost_{-1};
  Instant unsynced_from_{};  // relaxed modes: what was answered from then on is not durable if the power fails now
  std::int64_t jumps_ns_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace rq::ledger
