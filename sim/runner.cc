#include "sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "sim/broker_life.h"
#include "sim/cast.h"
#include "sim/lookups.h"
#include "sim/manager.h"
#include "sim/policies.h"
#include "sim/sim_chaos.h"
#include "sim/trouble.h"
#include "sim/watch.h"

namespace rq::sim {
namespace {

constexpr std::int64_t kConvergeLimit = 400 * kSecond;
constexpr std::int64_t kServeLimit = 60 * kSecond;
constexpr std::int64_t kStopLimit = 60 * kSecond;
constexpr std::int64_t kLookupLimit = 120 * kSecond;
constexpr std::uint64_t kIdleTurnsMax = 500;
constexpr std::int64_t kPoll = 100 * kMillisecond;

ledger::Settings ledger_settings(const Swarm& swarm) {
  ledger::Settings settings;
  settings.bootstrap_ns = swarm.bootstrap_s * kSecond;
  settings.transit_ns = swarm.transit_ns();
  if (swarm.max_attempts > 0 || swarm.retention_s > 0) settings.dead_letter_suffix = swarm.config().queue.dead_letter_suffix;
  settings.moves_may_wait = swarm.manage_gap_ms > 0;
  settings.attempts_max = static_cast<std::uint16_t>(swarm.max_attempts);
  if (swarm.ack_mode != 0) settings.relaxed_ns = settings.transit_ns + kSecond + swarm.relaxed_ms * kMillisecond;
  return settings;
}

class Run {
 public:
  Run(std::uint64_t seed, const RunOptions& options)
      : world_(seed, WorldOptions{.trace = options.trace}),
        swarm_(plan(world_, options)),
        ledger_(ledger_settings(swarm_)),
        stage_(world_, swarm_, ledger_),
        chaos_(options.plants, world_.random("chaos"), static_cast<std::uint32_t>(swarm_.buggify)),
        disk_(world_.make_disk("broker")),
        client_disk_(world_.make_disk("clients")),
        keep_directories_(options.keep_directories) {
    world_.set_chaos(&chaos_);
    life_ = std::make_unique<BrokerLife>(stage_, disk_);
    policies_ = std::make_unique<Policies>(life_->process(), ledger_, swarm_);
    watch_ = std::make_unique<Watch>(stage_, *life_, *policies_, disk_);
    cast_ = std::make_unique<Cast>(stage_, client_disk_);
    lookups_ = std::make_unique<Lookups>(stage_, client_disk_);
    trouble_ = std::make_unique<Trouble>(stage_, disk_, chaos_);
  }

  RunResult go() {
    if (const auto refused = broker::validate(swarm_.config())) stage_.fail("the plan's configuration is refused: " + *refused);
    if (stage_.failure.empty()) safety();
    keep_directory("safety");
    if (stage_.failure.empty()) liveness();
    if (stage_.failure.empty()) audit();
    return result();
  }

 private:
  static Swarm plan(const World& world, const RunOptions& options) {
    Swarm swarm = options.plain ? Swarm() : Swarm::draw(world.random("swarm"));
    std::string error;
    RQ_CHECK(swarm.apply(options.overrides, error));
    return swarm;
  }

  bool failed() {
    if (!stage_.trouble.empty()) stage_.fail("protocol: " + stage_.trouble);
    if (!ledger_.findings().empty()) stage_.fail("ledger: " + ledger_.findings()[0].rule + " " + ledger_.findings()[0].text);
    const BrokerProcess& process = life_->process();
    if (process.idle_turns_max > kIdleTurnsMax)
      stage_.fail(fmt::format("spin: {} turns without an event, asked for by {}", process.idle_turns_max, process.idle_cause));
    return !stage_.failure.empty();
  }

  void safety() {
    trouble_->set_rates();
    if (swarm_.manage_gap_ms > 0) disk_.put(Manager::kTokenFile, stage_.token);
    lookups_->start();
    life_->boot();
    cast_->populate();
    trouble_->crashes(*life_);
    trouble_->clocks(*life_);
    trouble_->policies(*policies_);
    if (swarm_.policy_gap_ms > 0) watch_->look_at_policies();
    trouble_->pressure(*watch_);
    trouble_->tokens();
    trouble_->storage(*life_);
    watch_->look_inside();
    trouble_->network(*cast_);
    if (lookups_->count() > 0)
      trouble_->every("lookup", swarm_.lookup_gap_ms, [this](Random& draws) { lookups_->disturb(draws); });
    const Instant end = world_.now() + swarm_.safety_ms * kMillisecond;
    while (world_.now() < end && !failed()) world_.run_for(std::min<std::int64_t>(kSecond, end - world_.now()));
  }

  // Polls until it holds; false when the limit passed first or something was found.
  bool wait(const std::function<bool()>& condition, std::int64_t limit_ns) {
    const Instant end = world_.now() + limit_ns;
    while (!condition()) {
      if (failed() || world_.now() >= end) return false;
      world_.run_for(kPoll);
    }
    return !failed();
  }

  bool converge(const char* phase) {
    Administrator& administrator = cast_->administrator();
    administrator.forget_backlog();
    cast_->poke_all();
    const std::int64_t limit = swarm_.slow(kServeLimit);
    if (!wait([this] { return life_->serving(); }, limit)) {
      stage_.fail(fmt::format("{}: the Broker does not serve after {} s", phase, limit / kSecond));
      return false;
    }
    if (!wait([this] { return cast_->drained(); }, kConvergeLimit)) {
      stage_.fail(fmt::format("{}: not drained after {} s: {} acknowledged messages unfinished, {} in /stats", phase,
                              kConvergeLimit / kSecond, ledger_.missing(),
                              administrator.backlog() ? std::to_string(administrator.backlog()->durable) : "nothing"));
      ledger_.audit(stage_.now());  // names them
      return false;
    }
    return true;
  }

  // Each lookup server that works holds what /stats shows.
  bool registered(const char* phase) {
    if (lookups_->count() == 0) return true;
    std::string difference = " nothing is known";
    const auto equal = [&] {
      const auto& shown = cast_->administrator().backlog();
      if (shown) difference = lookups_->difference(shown->names);
      return difference.empty();
    };
    if (wait(equal, swarm_.slow(kLookupLimit))) return true;
    stage_.fail(fmt::format("{}: lookup servers hold other names than the Broker after {} s:{}", phase,
                            swarm_.slow(kLookupLimit) / kSecond, difference));
    return false;
  }

  bool has_known(const std::string& topic, std::size_t server) {
    return life_->serving() && life_->broker().engine().has_channel(topic, Lookups::channel(server));
  }

  // The Channels that lookup servers know: whoever made them, somebody consumes them now.
  void consume_known() {
    for (std::int64_t t = 0; t < swarm_.topics; ++t) {
      const std::string topic = "topic" + std::to_string(t);
      for (std::size_t i = 0; i < lookups_->count(); ++i) {
        if (has_known(topic, i)) ++channels_learned_;
        cast_->subscribe(topic, Lookups::channel(i), 1);
      }
    }
  }

  // A Topic that is new here gets the Channels that the servers know of it, and no others.
  void find_channels() {
    if (!registered("liveness") || lookups_->count() == 0) return;
    cast_->subscribe(Lookups::kNewTopic, "seeker", 1);
    for (std::size_t i = 0; i < lookups_->count(); ++i) {
      if (lookups_->broken(i)) continue;
      if (!wait([&] { return has_known(Lookups::kNewTopic, i); }, swarm_.slow(kLookupLimit)))
        stage_.fail("liveness: a Channel that a lookup server knows of a new Topic is not made");
    }
    if (!registered("liveness, new Topic")) return;
    for (const std::string& name : cast_->administrator().backlog()->names)
      if (name.find("ghost") != std::string::npos) stage_.fail("a lookup server made the Broker create \"" + name + "\"");
  }

  void liveness() {
    trouble_->heal(*life_);
    lookups_->heal();
    stage_.calm = true;
    stage_.publish = false;
    cast_->poke_all();
    if (!life_->running()) life_->boot();
    consume_known();
    if (!converge("liveness")) return;
    find_channels();
    // What expires would change the states that the audit compares.
    if (!wait([this] { return policies_->settle(stage_.now()); }, swarm_.slow(kServeLimit)))
      stage_.fail("liveness: a policy does not change");
  }

  bool stop(const char* phase) {
    life_->hold(true);
    life_->request_stop();
    if (wait([this] { return !life_->running(); }, swarm_.slow(kStopLimit))) return true;
    stage_.fail(fmt::format("{}: no clean stop within {} s", phase, swarm_.slow(kStopLimit) / kSecond));
    return false;
  }

  // The state that opening finds; 0 on failure.
  std::uint64_t open_and_digest() {
    cast_->cut_off();
    life_->boot();
    if (!wait([this] { return life_->serving(); }, swarm_.slow(kServeLimit))) {
      stage_.fail("audit: the Broker does not serve");
      return 0;
    }
    life_->broker().check_invariants();
    Hasher hasher;
    life_->broker().engine().digest(hasher);
    return hasher.value;
  }

  void audit() {
    // Collection would change what opening finds.
    life_->process().config.storage.maintenance_startup_delay_seconds = 1'000'000;
    if (!stop("audit")) return;
    if (!wait([this] { return lookups_->difference({}).empty(); }, kLookupLimit))
      return stage_.fail("audit: a stop leaves names on a lookup server:" + lookups_->difference({}));
    const std::uint64_t first = open_and_digest();
    if (failed() || !stop("audit, second")) return;
    const std::uint64_t second = open_and_digest();
    if (failed()) return;
    // I-59, I-60: what recovery finds depends on the disk alone, and a clean stop has made all of it durable.
    if (first != second) return stage_.fail("audit: opening twice gives two states");
    life_->kill(true);
    const std::uint64_t third = open_and_digest();
    if (failed()) return;
    if (first != third) return stage_.fail("audit: a power loss after a clean stop changed the state");
    world_.heal();
    life_->hold(false);
    if (!converge("audit") || !registered("audit")) return;
    world_.run_for(5 * kSecond);  // anything that comes now was hidden
    // A half-open peer's half a body is charged until its time limit.
    if (!wait([this] { return life_->broker().publish_bytes_in_flight() == 0; }, 120 * kSecond))
      return stage_.fail("audit: publish bytes are still charged");
    life_->broker().check_invariants();
    ledger_.audit(stage_.now());
    failed();
  }

  void keep_directory(const char* moment) {
    if (!keep_directories_) return;
    for (const std::string& path : disk_.files()) directories_[moment][path] = disk_.content(path);
  }

  RunResult result() {
    failed();
    RunResult out;
    keep_directory("end");
    out.directories = std::move(directories_);
    out.failure = stage_.failure;
    out.plan = swarm_.text();
    out.report = ledger_.report();
    out.trace_hash = world_.trace_hash();
    out.events = world_.events();
    out.virtual_ns = world_.now().ns;
    out.totals = ledger_.totals();
    out.faults = world_.counts();
    out.quiesced = watch_->quiesced();
    out.misdeeds = stage_.misdeeds;
    out.feed_messages = stage_.feed_messages;
    out.channels_learned = channels_learned_;
    out.rots = life_->rot().flipped();
    out.rots_found = life_->rot().found();
    out.boots = life_->process().boots;
    const BrokerLife::Ends& ends = life_->ends();
    out.kills = ends.kills;
    out.power_losses = ends.power_losses;
    out.failed_exits = ends.failed_exits;
    out.clean_exits = ends.clean_exits;
    out.opening_kills = ends.while_opening;
    return out;
  }

  World world_;
  const Swarm swarm_;
  ledger::Ledger ledger_;
  Stage stage_;
  SimChaos chaos_;
  SimDisk& disk_;
  SimDisk& client_disk_;
  std::unique_ptr<BrokerLife> life_;
  std::unique_ptr<Policies> policies_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Cast> cast_;
  std::unique_ptr<Lookups> lookups_;
  std::unique_ptr<Trouble> trouble_;
  std::uint64_t channels_learned_ = 0;
  const bool keep_directories_;
  std::map<std::string, std::map<std::string, std::string>> directories_;  // by moment
};

}  // namespace

RunResult run_seed(std::uint64_t seed, const RunOptions& options) {
  auto run = std::make_unique<Run>(seed, options);
  return run->go();
}

}  // namespace rq::sim
