#include "sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/broker/disk_guard.h"
#include "sim/administrator.h"
#include "sim/broker_process.h"
#include "sim/consumer.h"
#include "sim/feed_reader.h"
#include "sim/manager.h"
#include "sim/policies.h"
#include "sim/producer.h"
#include "sim/rude.h"

namespace rq::sim {
namespace {

constexpr std::int64_t kConvergeLimit = 400 * kSecond;
constexpr std::int64_t kServeLimit = 60 * kSecond;
constexpr std::int64_t kStopLimit = 60 * kSecond;
constexpr std::uint64_t kIdleTurnsMax = 500;
constexpr std::int64_t kLookPause = 20 * kMillisecond;
constexpr std::int64_t kDiskCallsMax = 5'000;
constexpr std::int64_t kPoll = 100 * kMillisecond;

// Planted bugs, and rare paths that the core offers; each site is on or off for a whole run and has a stream of its own.
class SimChaos final : public io::Chaos {
 public:
  SimChaos(std::set<std::string> plants, Random random, std::uint32_t rate)
      : plants_(std::move(plants)), random_(random), rate_(rate) {}
  bool fire(const char* site, std::uint32_t) override {
    if (rate_ == 0) return false;
    auto found = sites_.find(site);
    if (found == sites_.end()) found = sites_.emplace(site, Site(random_.split(site))).first;
    return found->second.on && found->second.draws.chance(rate_);
  }
  bool planted(const char* bug) override { return plants_.contains(bug); }
  void calm() { rate_ = 0; }

 private:
  struct Site {
    explicit Site(Random random) : draws(random), on(draws.chance(512)) {}
    Random draws;
    bool on;
  };
  std::set<std::string> plants_;
  Random random_;
  std::uint32_t rate_;
  std::map<std::string, Site, std::less<>> sites_;
};

std::uint32_t rate(std::int64_t value) { return static_cast<std::uint32_t>(value); }

ledger::Settings ledger_settings(const Swarm& swarm) {
  ledger::Settings settings;
  settings.bootstrap_ns = swarm.bootstrap_s * kSecond;
  settings.transit_ns = 2 * kSecond + 40 * (swarm.disk_us + swarm.net_us) * kMicrosecond + (swarm.stall > 0 ? 8 * kSecond : 0);
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
        chaos_(options.plants, world_.random("chaos"), rate(swarm_.buggify)),
        disk_(world_.make_disk("broker")),
        client_disk_(world_.make_disk("clients")),
        faults_(world_.random("faults")),
        keep_directories_(options.keep_directories) {
    world_.set_chaos(&chaos_);
    broker_ = std::make_unique<BrokerProcess>(world_, "broker", disk_, swarm_.config());
    broker_->on_end = [this](const BrokerProcess::Ended& ended) { on_end(ended); };
    policies_ = std::make_unique<Policies>(*broker_, ledger_, swarm_);
  }

  RunResult go() {
    if (const auto refused = broker::validate(swarm_.config())) fail("the plan's configuration is refused: " + *refused);
    if (failure_.empty()) safety();
    keep_directory("safety");
    if (failure_.empty()) liveness();
    if (failure_.empty()) audit();
    return result();
  }

 private:
  static Swarm plan(const World& world, const RunOptions& options) {
    Swarm swarm = options.plain ? Swarm() : Swarm::draw(world.random("swarm"));
    std::string error;
    RQ_CHECK(swarm.apply(options.overrides, error));
    return swarm;
  }

  Now now() const { return {world_.now(), WallTime{kWallStart + world_.now().ns}}; }

  void fail(std::string reason) {
    if (failure_.empty()) failure_ = std::move(reason);
  }
  bool failed() {
    if (!stage_.trouble.empty()) fail("protocol: " + stage_.trouble);
    if (!ledger_.findings().empty()) fail("ledger: " + ledger_.findings()[0].rule + " " + ledger_.findings()[0].text);
    if (broker_->idle_turns_max > kIdleTurnsMax)
      fail(fmt::format("spin: {} turns without an event, asked for by {}", broker_->idle_turns_max, broker_->idle_cause));
    return !failure_.empty();
  }

  // --- processes
  template <class A, class... Args>
  A* add(const std::string& name, Args... args) {
    Process& process = world_.make_process(name, client_disk_, [this, args...](io::Host& host, io::Turn&) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new A(stage_, host, args...),
                                                              [](io::Shard* shard) { delete static_cast<A*>(shard); });
    });
    process.start();
    process.poke();
    actors_.push_back(&process);
    return static_cast<A*>(process.shard());
  }

  void populate() {
    const std::string tcp = swarm_.config().network.tcp_address, http = swarm_.config().network.http_address;
    administrator_ = add<Administrator>("admin", http);
    if (swarm_.manage_gap_ms > 0) add<Manager>("manager", http);
    for (std::int64_t i = 0; i < swarm_.producers; ++i)
      producers_.push_back(add<Producer>("producer-" + std::to_string(i), tcp, static_cast<std::uint32_t>(i)));
    if (swarm_.ephemeral > 0)
      for (const char* channel : {"one#ephemeral", "two#ephemeral"}) subscribe(std::string(kEphemeralTopic), channel, 1);
    for (std::int64_t i = 0; i < swarm_.rude; ++i) {
      const bool over_http = i == 1;
      add<Rude>("rude-" + std::to_string(i), over_http ? http : tcp, over_http);
    }
    for (std::int64_t t = 0; t < swarm_.topics; ++t) {
      const std::string topic = "topic" + std::to_string(t);
      for (std::int64_t c = 0; c < swarm_.channels; ++c) subscribe(topic, "channel" + std::to_string(c), swarm_.consumers);
      if (swarm_.ephemeral > 0) subscribe(topic, "passing#ephemeral", 1);
      for (std::int64_t f = 0; f < swarm_.feeds; ++f) add<FeedReader>(fmt::format("feed-{}-{}", topic, f), http, topic);
      if (swarm_.late_channel_ms > 0)
        world_.at(swarm_.late_channel_ms * kMillisecond, [this, topic] { subscribe(topic, "late", 1); });
    }
  }

  void subscribe(const std::string& topic, const std::string& channel, std::int64_t count) {
    const std::string tcp = swarm_.config().network.tcp_address;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string name = "consumer-" + std::to_string(consumers_.size());
      consumers_.push_back(add<Consumer>(name, tcp, topic, channel));
    }
    const bool moves = swarm_.max_attempts > 0 || swarm_.retention_s > 0;
    const std::string suffix = swarm_.config().queue.dead_letter_suffix;
    if (moves && !topic.ends_with(suffix) && !channel.ends_with("#ephemeral"))
      subscribe(topic + "." + channel + suffix, "letters", 1);
  }

  void poke_all() {
    for (Process* actor : actors_) actor->poke();
  }

  // --- the Broker's life
  std::uint64_t injected() { return world_.counts().sync_failures + world_.counts().no_space + world_.counts().io_errors; }

  void boot() {
    if (broker_->running()) return;
    injected_at_boot_ = injected();
    handles_at_boot_ = world_.counts().no_handles;
    broker_->boot();
  }

  void broker_gone() {
    stage_.quiesced_at = Instant::never();
    ++stage_.broker_ends;
  }

  void on_end(const BrokerProcess::Ended& ended) {
    broker_gone();
    const bool clean = ended.exit == broker::Broker::Exit::clean;
    ++(clean ? clean_exits_ : failed_exits_);
    ledger_.broker_stopped(clean && ended.served ? ledger::Stop::clean : ledger::Stop::crash, now(), ended.served);
    world_.note(ended.reason);
    // Out of file handles is no storage fault, but a start may give up on it.
    const bool out_of_handles = !ended.served && world_.counts().no_handles > handles_at_boot_;
    const bool rot = !clean && mend(ended.reason);
    const bool no_token = !ended.served && swarm_.token_ms > 0 && ended.reason.starts_with("token file");
    if (!clean && injected() == injected_at_boot_ && !out_of_handles && !rot && !no_token)
      fail("the Broker ended without a fault: " + ended.reason);
    if (clean && !stopping_) fail("the Broker ended although nobody asked it to");
    stopping_ = false;
    if (!holding_) restart_later();
  }

  // The operator brings the file back that the fault names. False if no damaged file is named.
  bool mend(const std::string& reason) {
    for (const std::string& path : rotten_) {
      if (reason.find(path.substr(path.find("topics/"))) == std::string::npos) continue;
      disk_.mend(path);
      ++mended_;
      return true;
    }
    return false;
  }

  // A bit of a segment that is sealed, or of its sidecar, flips.
  void rot(Random& draws) {
    std::vector<std::string> sealed;
    const std::vector<std::string> files = disk_.files();
    for (std::size_t i = 0; i < files.size(); ++i) {
      const bool sidecar = files[i].ends_with(".rqidx");
      const bool segment = files[i].ends_with(".rqlog") && i + 1 < files.size() &&
                           files[i + 1].find("/segment-") != std::string::npos &&
                           files[i + 1].substr(0, files[i + 1].rfind('/')) == files[i].substr(0, files[i].rfind('/'));
      if (sidecar || segment) sealed.push_back(files[i]);
    }
    if (sealed.empty()) return;
    const std::string& path = sealed[draws.below(sealed.size())];
    const std::uint64_t size = disk_.content(path).size();
    if (size == 0 || !disk_.rot(path, draws.below(size))) return;
    ++rots_;
    rotten_.insert(path);
  }

  void restart_later() {
    world_.at(static_cast<std::int64_t>(faults_.below(stage_.calm ? 50 : 1'500)) * kMillisecond, [this] {
      if (!holding_) boot();
    });
  }

  void crash(bool power) {
    if (!broker_->running()) return;
    kill(power);
    restart_later();
  }

  void kill(bool power) {
    const bool served = broker_->served();
    if (!served) ++opening_kills_;
    broker_->kill();
    broker_gone();
    stopping_ = false;
    ledger_.broker_stopped(power ? ledger::Stop::power_loss : ledger::Stop::crash, now(), served);
    if (power) disk_.power_loss();
    ++(power ? power_losses_ : kills_);
  }

  // Runs `action` again and again with a mean pause, while the safety phase lasts.
  void every(const char* name, std::int64_t mean_ms, std::function<void(Random&)> action) {
    if (mean_ms == 0) return;
    streams_.push_back(std::make_unique<Random>(faults_.split(name)));
    again(streams_.back().get(), mean_ms, std::move(action));
  }
  void again(Random* stream, std::int64_t mean_ms, std::function<void(Random&)> action) {
    const auto pause_us = static_cast<std::int64_t>(stream->below(static_cast<std::uint64_t>(mean_ms) * 2'000 + 1));
    world_.at(pause_us * kMicrosecond, [this, stream, mean_ms, action = std::move(action)]() mutable {
      if (stage_.calm) return;
      action(*stream);
      again(stream, mean_ms, std::move(action));
    });
  }

  // --- phases
  void set_faults() {
    DiskFaults& disk = disk_.faults;
    disk.sync_fail = rate(swarm_.sync_fail);
    disk.no_space = rate(swarm_.no_space);
    disk.write_io_error = rate(swarm_.write_error);
    disk.read_io_error = rate(swarm_.read_error);
    disk.no_handles = rate(swarm_.no_handles);
    disk.stall = rate(swarm_.stall);
    disk.latency_ns_max = std::max(disk.latency_ns_min, swarm_.disk_us * kMicrosecond);
    NetFaults& net = world_.net();
    net.reset = rate(swarm_.reset);
    net.half_open = rate(swarm_.half_open);
    net.refuse = rate(swarm_.refuse);
    net.no_handles = rate(swarm_.no_handles);
    net.latency_ns_max = std::max(net.latency_ns_min, swarm_.net_us * kMicrosecond);
  }

  void safety() {
    set_faults();
    if (swarm_.manage_gap_ms > 0) disk_.put(Manager::kTokenFile, stage_.token);
    boot();
    populate();
    every("kill", swarm_.kill_ms, [this](Random&) { crash(false); });
    every("power", swarm_.power_loss_ms, [this](Random&) { crash(true); });
    every("stop", swarm_.stop_ms, [this](Random&) {
      if (!broker_->running()) return;
      stopping_ = true;
      broker_->request_stop();
    });
    every("clock", swarm_.clock_step_ms, [this](Random& draws) {
      const std::int64_t step = (static_cast<std::int64_t>(draws.below(20'000)) - 10'000) * kMillisecond;
      broker_->process().wall_offset_ns += step;
      ledger_.wall_stepped(step);
    });
    every("policy", swarm_.policy_gap_ms, [this](Random& draws) { policies_->change(draws, now()); });
    if (swarm_.policy_gap_ms > 0) look_at_policies();
    every("pressure", swarm_.pressure_ms, [this](Random& draws) {
      if (!disk_.claims_full) full_since_ = world_.now();
      disk_.claims_full = true;
      const auto spell = static_cast<std::int64_t>(draws.below(8'000)) * kMillisecond;
      world_.at(spell, [this] { disk_.claims_full = false; });
    });
    if (swarm_.manage_gap_ms > 0) every("token", swarm_.token_ms, [this](Random& draws) { change_token(draws); });
    every("rot", swarm_.rot_ms, [this](Random& draws) { rot(draws); });
    crash_in_steps();
    look_inside();
    every("partition", swarm_.partition_ms, [this](Random& draws) {
      const std::size_t which = draws.below(actors_.size());
      const std::string name = actors_[which]->name();
      const std::uint64_t ways = draws.below(3);
      if (ways != 0) world_.partition(name, "broker");
      if (ways != 1) world_.partition("broker", name);
      for (Consumer* consumer : consumers_) consumer->doubt();
      world_.at(static_cast<std::int64_t>(draws.below(5'000)) * kMillisecond, [this] {
        if (!stage_.calm) world_.heal();  // the audit cuts the clients off on purpose
      });
    });
    const Instant end = world_.now() + swarm_.safety_ms * kMillisecond;
    while (world_.now() < end && !failed()) world_.run_for(std::min<std::int64_t>(kSecond, end - world_.now()));
  }

  // Another token, or for a moment none at all.
  void change_token(Random& draws) {
    const bool empty = draws.chance(300);
    if (empty) disk_.put(Manager::kTokenFile, "\n");
    const auto moment = static_cast<std::int64_t>(empty ? draws.below(2'000) : 0) * kMillisecond;
    world_.at(moment, [this] { put_token("console-secret-" + std::to_string(++tokens_)); });
  }
  void put_token(std::string token) {
    stage_.token = std::move(token);
    stage_.token_since = world_.now();
    disk_.put(Manager::kTokenFile, stage_.token + "\n");
  }

  void look_at_policies() {
    policies_->look(now());
    if (!stage_.calm) world_.at(kLookPause, [this] { look_at_policies(); });
  }

  // The invariants of the running objects (page 30: I-02, I-13, I-18 to I-20, I-44).
  void look_inside() {
    if (stage_.calm) return;
    if (broker_->serving()) {
      broker_->broker().check_invariants();
      watch_quiesced();
      watch_pressure();
    }
    world_.at(kLookPause, [this] { look_inside(); });
  }

  // I-52: nothing is answered OK and nothing handed over while the Broker is known to be quiesced.
  void watch_quiesced() {
    if (stage_.quiesced_at == Instant::never()) return;
    const broker::BrokerCounters& counters = broker_->broker().counters();
    const std::uint64_t moved = counters.publish_messages + counters.delivered_messages + counters.websocket_messages;
    if (watched_quiesced_ == stage_.quiesced_at && moved != moved_) fail("a quiesced Broker published or delivered");
    if (watched_quiesced_ != stage_.quiesced_at) ++quiesced_;
    watched_quiesced_ = stage_.quiesced_at;
    moved_ = moved;
  }

  // Nothing is published while the volume has looked full for as long as the guard's next reading and what was on its way may
  // take.
  void watch_pressure() {
    const std::int64_t known_ns = slow(broker::DiskGuard::kPeriodNs + ledger_settings(swarm_).transit_ns);
    const std::uint64_t published = broker_->broker().counters().publish_messages;
    const bool full = disk_.claims_full && swarm_.read_error == 0 && world_.now() - full_since_ >= known_ns;
    if (full && full_boot_ == broker_->boots && published != full_published_) fail("published on a volume known to be full");
    full_boot_ = full ? broker_->boots : 0;
    full_published_ = published;
  }

  // Crashes where a script is between two steps: in a checkpoint's rename, a collection, an opening.
  void crash_in_steps() {
    if (swarm_.crash_step == 0) return;
    streams_.push_back(std::make_unique<Random>(faults_.split("step")));
    disk_.on_step = [this, draws = streams_.back().get()] {
      if (stage_.calm || !draws->chance(rate(swarm_.crash_step))) return;
      const bool power = draws->below(2) == 0;
      world_.at(0, [this, power] { crash(power); });
    };
  }

  void heal() {
    disk_.on_step = nullptr;
    disk_.claims_full = false;
    if (swarm_.manage_gap_ms > 0) put_token(stage_.token);
    for (const std::string& path : disk_.rotten()) disk_.mend(path);
    const std::int64_t disk_max = disk_.faults.latency_ns_max;
    disk_.faults = DiskFaults{};
    disk_.faults.latency_ns_max = disk_max;
    const std::int64_t net_max = world_.net().latency_ns_max;
    world_.net() = NetFaults{};
    world_.net().latency_ns_max = net_max;
    world_.heal();
    chaos_.calm();
    stage_.calm = true;
    stage_.publish = false;
    poke_all();
  }

  bool drained() {
    if (ledger_.missing() > 0) return false;
    for (const Producer* producer : producers_)
      if (!producer->idle()) return false;
    // One that has yet to create its Channel brings a backlog of its own.
    for (const Consumer* consumer : consumers_)
      if (!consumer->subscribed()) return false;
    const auto& backlog = administrator_->backlog();
    return backlog && backlog->durable == 0;
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

  // What takes many disk calls one after the other, a rotation for each of 80 publishes or an opening of 200 segments, takes
  // longer on a slow disk.
  std::int64_t slow(std::int64_t limit_ns) const { return limit_ns + kDiskCallsMax * swarm_.disk_us * kMicrosecond; }

  bool converge(const char* phase) {
    administrator_->forget_backlog();
    poke_all();
    if (!wait([this] { return broker_->serving(); }, slow(kServeLimit))) {
      fail(fmt::format("{}: the Broker does not serve after {} s", phase, slow(kServeLimit) / kSecond));
      return false;
    }
    if (!wait([this] { return drained(); }, kConvergeLimit)) {
      fail(fmt::format("{}: not drained after {} s: {} acknowledged messages unfinished, {} in /stats", phase,
                       kConvergeLimit / kSecond, ledger_.missing(),
                       administrator_->backlog() ? std::to_string(administrator_->backlog()->durable) : "nothing"));
      ledger_.audit(now());  // names them
      return false;
    }
    return true;
  }

  void liveness() {
    heal();
    if (!broker_->running()) boot();
    if (!converge("liveness")) return;
    // What expires would change the states that the audit compares.
    if (!wait([this] { return policies_->settle(now()); }, slow(kServeLimit))) fail("liveness: a policy does not change");
  }

  bool stop(const char* phase) {
    holding_ = true;
    stopping_ = true;
    broker_->request_stop();
    if (wait([this] { return !broker_->running(); }, slow(kStopLimit))) return true;
    fail(fmt::format("{}: no clean stop within {} s", phase, slow(kStopLimit) / kSecond));
    return false;
  }

  // The state that opening finds; 0 on failure.
  std::uint64_t open_and_digest() {
    for (Process* actor : actors_) world_.partition(actor->name(), "broker");
    boot();
    if (!wait([this] { return broker_->serving(); }, slow(kServeLimit))) {
      fail("audit: the Broker does not serve");
      return 0;
    }
    broker_->broker().check_invariants();
    Hasher hasher;
    broker_->broker().engine().digest(hasher);
    return hasher.value;
  }

  void audit() {
    broker_->config.storage.maintenance_startup_delay_seconds = 1'000'000;  // collection would change what opening finds
    if (!stop("audit")) return;
    const std::uint64_t first = open_and_digest();
    if (failed() || !stop("audit, second")) return;
    const std::uint64_t second = open_and_digest();
    if (failed()) return;
    // I-59, I-60: what recovery finds depends on the disk alone, and a clean stop has made all of it durable.
    if (first != second) return fail("audit: opening twice gives two states");
    kill(true);
    const std::uint64_t third = open_and_digest();
    if (failed()) return;
    if (first != third) return fail("audit: a power loss after a clean stop changed the state");
    world_.heal();
    holding_ = false;
    if (!converge("audit")) return;
    world_.run_for(5 * kSecond);  // anything that comes now was hidden
    // A half-open peer's half a body is charged until its time limit.
    if (!wait([this] { return broker_->broker().publish_bytes_in_flight() == 0; }, 120 * kSecond))
      return fail("audit: publish bytes are still charged");
    broker_->broker().check_invariants();
    ledger_.audit(now());
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
    out.failure = failure_;
    out.plan = swarm_.text();
    out.report = ledger_.report();
    out.trace_hash = world_.trace_hash();
    out.events = world_.events();
    out.virtual_ns = world_.now().ns;
    out.totals = ledger_.totals();
    out.faults = world_.counts();
    out.boots = broker_->boots;
    out.kills = kills_;
    out.power_losses = power_losses_;
    out.failed_exits = failed_exits_;
    out.quiesced = quiesced_;
    out.misdeeds = stage_.misdeeds;
    out.feed_messages = stage_.feed_messages;
    out.rots = rots_;
    out.rots_found = mended_;
    out.opening_kills = opening_kills_;
    out.clean_exits = clean_exits_;
    return out;
  }

  static constexpr std::int64_t kWallStart = WorldOptions{}.wall_start_ns;

  World world_;
  const Swarm swarm_;
  ledger::Ledger ledger_;
  Stage stage_;
  SimChaos chaos_;
  SimDisk& disk_;
  SimDisk& client_disk_;
  Random faults_;
  std::vector<std::unique_ptr<Random>> streams_;
  std::unique_ptr<BrokerProcess> broker_;
  std::unique_ptr<Policies> policies_;
  Instant watched_quiesced_ = Instant::never();
  std::uint64_t moved_ = 0;     // publishes and deliveries when it was last looked at
  std::uint64_t quiesced_ = 0;  // how often it was
  Administrator* administrator_ = nullptr;
  std::vector<Producer*> producers_;
  std::vector<Consumer*> consumers_;
  std::vector<Process*> actors_;
  std::uint64_t injected_at_boot_ = 0, handles_at_boot_ = 0;
  bool stopping_ = false;  // SIGTERM was sent
  bool holding_ = false;   // no automatic restart
  const bool keep_directories_;
  std::map<std::string, std::map<std::string, std::string>> directories_;  // by moment
  std::set<std::string> rotten_;  // ever: a fault may be met before the file was mended and end the Broker after
  std::uint64_t tokens_ = 0;
  Instant full_since_{};                              // while the volume claims to be full
  std::uint64_t full_boot_ = 0, full_published_ = 0;  // of the Broker that knows it, and what it had published then
  std::uint64_t rots_ = 0, mended_ = 0, opening_kills_ = 0;
  std::uint64_t kills_ = 0, power_losses_ = 0, failed_exits_ = 0, clean_exits_ = 0;
  std::string failure_;
};

}  // namespace

RunResult run_seed(std::uint64_t seed, const RunOptions& options) {
  auto run = std::make_unique<Run>(seed, options);
  return run->go();
}

}  // namespace rq::sim
