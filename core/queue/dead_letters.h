// Dead-letter moves: a message leaves its Channel for the Topic of the Channel's dead letters (page 30 section 10, page 20
// section 7.1). One machine a Broker, at most one move at a time, independent of the connection that triggered it:
//
//   idle -> reading (the body) -> storing (the intent, durable) -> publishing (the copy, fsynced in every ack mode)
//        -> finishing (the source, its WAL fsynced) -> clearing (the intent is gone, its directory synced) -> idle
//
// At the start the same steps replay the intents of an earlier process, with loading and locating before them.
//
//  I1 A message leaves its source only after its copy is durable (I-51); an intent file goes only after that finish is durable.
//  I2 A move and a policy change exclude each other (I-04): none starts while a change runs or waits.
//  I3 Memory: one body. Who waits for a move holds its reservation and slot; an intent that is kept is one small entry.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/queue/dead_letter_rules.h"
#include "core/queue/shared.h"
#include "core/storage/file_read.h"
#include "core/storage/outbox.h"
#include "core/storage/script.h"

namespace rq::queue {

// The Topics of the Broker, as a move needs them.
class TopicBook {
 public:
  virtual Topic* source_topic(std::string_view name) = 0;  // null unless it is live
  // To publish into, created when it is missing. Null with the reason when it may not be touched now: topic_limit,
  // topic_retiring.
  virtual Topic* target_topic(std::string_view name, Code& why) = 0;

 protected:
  ~TopicBook() = default;
};

class DeadLetters {
 public:
  // Intents of refused targets that are kept; above it a refused move leaves none.
  static constexpr std::size_t kIntentsMax = 65'536;

  DeadLetters(Shared& shared, TopicBook& topics, DeadLetterSettings settings);
  ~DeadLetters();
  DeadLetters(const DeadLetters&) = delete;
  DeadLetters& operator=(const DeadLetters&) = delete;

  // --- at the hand-over of a reservation
  DeadLetterCause cause(const Topic& topic, const Reservation& reservation, Now now) const;
  // The consumer keeps the reservation and its slot until the move is over.
  void want(ChannelLane& lane, ConsumerId consumer, const Reservation& reservation, DeadLetterCause cause);
  void forget(ConsumerId consumer);  // it is gone; what already moves goes on

  // --- replay, before anything else. File names in byte order.
  void replay(std::vector<std::string> files) { files_.assign(files.begin(), files.end()); }
  bool replayed() const { return files_.empty() && idle(); }
  void stop_replay() { files_.clear(); }

  // --- policy changes (I2)
  bool idle() const { return step_ == Step::idle; }
  // True when the change may begin now, end_policy_change() follows; otherwise the Topic is marked when the move is over.
  bool begin_policy_change(Topic& topic);
  void end_policy_change() { --policy_changes_; }
  // Adds the removal of every intent whose source is this Topic: enabling TTL (page 30 section 9.1).
  void drop_intents_of(const Topic& topic, storage::Script& script);

  // --- collection: the lowest position of that Topic that an intent names; UINT64_MAX if none
  storage::Position lowest_intent(std::uint64_t topic_owner) const;
  void topic_gone(Topic& topic);  // its intents stay on disk, for the next start

  // --- the turn
  void advance(Now now);
  void on_published(const Outcome& outcome);  // the internal publish: durable, or refused
  void on_finished();                         // the source's finish is durable
  bool quiet() const { return idle() && wanted_.empty() && files_.empty(); }

 private:
  enum class Step : std::uint8_t { idle, loading, locating, reading, storing, publishing, finishing, clearing };
  struct Wanted {
    std::uint64_t lane = 0;  // serial
    ConsumerId consumer = ConsumerId::none;
    MessageMeta message;
    Token token = 0;
    DeadLetterCause cause = DeadLetterCause::none;
  };
  struct Move : Wanted {
    bool copied = false;      // the copy is durable
    std::uint64_t topic = 0;  // owner number of the source Topic, 0 without one
    storage::OutboxEntry entry;
    std::string file;
    Slice body;
  };

  bool step(Now now);  // true: something changed, go on
  bool begin_next();
  bool start(const Wanted& wanted);
  bool take_body();
  bool store();
  bool publish(Now now);
  bool finish(Now now);
  bool clear();
  void end_move();
  void refuse(Code code);
  void give_up();               // without a move: the message is offered again
  ChannelLane* source() const;  // null once the Channel is gone
  void begin_script();
  void keep(const std::string& file, std::uint64_t topic, storage::Position position);
  void drop(const std::string& file);
  std::string path_of(const std::string& file) const;
  static void on_script(void* self, storage::Script& script);
  static void on_read(storage::ReadPool::Read& read);

  // dead_letters_replay.cc
  bool load_next();
  bool take_file(Now now);
  bool locate(Now now);
  bool located(Now now);
  static void on_load(io::Op& op) noexcept;

  Shared& shared_;
  TopicBook& topics_;
  const DeadLetterSettings settings_;
  std::deque<Wanted> wanted_;
  std::deque<std::string> files_;  // to replay
  Step step_ = Step::idle;
  bool arrived_ = false;  // what the step waits for
  Outcome published_;
  Move move_;
  storage::ReadPool::Read read_;
  std::unique_ptr<storage::Script> script_, finished_;
  int policy_changes_ = 0;
  std::vector<Topic*> waiting_changes_;

  io::Op load_op_;
  storage::FileRead load_;
  storage::Position low_ = 0, high_ = 0;  // where the source is looked for

  struct Pin {
    std::uint64_t topic;
    storage::Position position;
  };
  std::map<std::string, Pin> intents_;  // by file name
  std::set<std::tuple<std::uint64_t, storage::Position, std::string>> pins_;
};

}  // namespace rq::queue
