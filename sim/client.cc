// The scripted NSQ and HTTP connections of the harness: each is a small process of its own in the simulated world.
#include <algorithm>
#include <utility>

#include "core/codec/codec.h"
#include "sim/harness.h"
#include "sim/link.h"

namespace rq::sim {

class Client::Shard final : public io::Shard {
 public:
  explicit Shard(io::Host& host, const io::Turn& turn) : host_(host), turn_(turn), link_(host) {}

  void expire(Now) override {
    if (address_to_open_.empty()) return;
    link_.open(address_to_open_, deadline_);
    address_to_open_.clear();
  }
  void settle(Now now) override {
    receive(now);
    link_.submit();
  }
  Instant next_deadline() const override { return Instant::never(); }

  void open(std::string_view address, Instant deadline) {
    address_to_open_ = address;
    deadline_ = deadline;
  }

  io::Host& host_;
  const io::Turn& turn_;
  Link link_;
  std::string raw_;
  std::vector<Frame> frames_;
  std::uint64_t heartbeats_ = 0;
  bool framed_ = true;  // false: HTTP, no frames
  bool answer_heartbeats_ = true;
  bool keep_heartbeats_ = false;
  bool awaits_tls_ = false;
  int layers_ = 0;       // granted by IDENTIFY's answer and not begun
  bool paused_ = false;  // what comes next belongs to a layer that is not begun
  std::unique_ptr<codec::Encoder> encoder_;
  std::unique_ptr<codec::Decoder> decoder_;

  void send(std::string_view bytes) {
    if (encoder_ == nullptr || bytes.empty()) return link_.send(bytes);
    std::string out;
    const ConstBuf piece = bytes_of(bytes);
    encoder_->encode(std::span(&piece, 1), out);
    link_.send(out);
  }
  void begin_layer() {
    layers_ = std::max(layers_ - 1, 0);
    paused_ = false;
  }

 private:
  std::string decode(std::string_view bytes) {
    std::string out;
    std::string room(64 * 1024, '\0');
    ConstBuf in = bytes_of(bytes);
    for (;;) {
      const codec::Decoder::Step step = decoder_->decode(in, std::as_writable_bytes(std::span(room)));
      out.append(room, 0, step.made);
      in = in.subspan(step.used);
      if (step.failed) link_.close();
      if (step.failed || (in.empty() && step.made < room.size())) return out;
    }
  }
  static int layers_of(const Frame& reply) {
    int layers = 0;
    for (const std::string_view name : {"\"tls_v1\":true", "\"snappy\":true", "\"deflate\":true"})
      layers += reply.type == 0 && reply.payload.starts_with("{") && reply.payload.find(name) != std::string::npos ? 1 : 0;
    return layers;
  }
  void receive(Now now) {
    raw_.append(link_.inbox);
    if (framed_) received_.append(link_.inbox);
    link_.inbox.clear();
    if (received_.empty() || paused_) return;
    if (awaits_tls_) {
      const std::size_t feed = received_.find('\n');
      if (feed == std::string::npos) return;
      received_.erase(0, feed + 1);
      awaits_tls_ = false;
    }
    plain_.append(decoder_ == nullptr ? received_ : decode(received_));
    received_.clear();
    take_frames(now);
  }
  void take_frames(Now now) {
    bool broken = false;
    while (std::optional<Frame> frame = take_frame(plain_, now.mono, broken)) {
      if (frame->type == 0 && frame->payload == "_heartbeat_") {
        ++heartbeats_;
        if (answer_heartbeats_) send("NOP\n");
        if (!keep_heartbeats_) continue;
      }
      layers_ += layers_of(*frame);
      frames_.push_back(std::move(*frame));
      if (layers_ == 0) continue;
      paused_ = true;
      received_ = std::exchange(plain_, {});
      return;
    }
    if (broken) link_.close();
  }

  std::string received_;  // not decoded
  std::string plain_;     // decoded and not yet a whole frame
  std::string address_to_open_;
  Instant deadline_;
};

Client::Client(World& world, SimDisk& disk, std::string_view name)
    : world_(world), process_(world.make_process(name, disk, [](io::Host& host, io::Turn& turn) {
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(host, turn),
                                                                [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
      })) {}

Client::~Client() = default;

Client::Shard& Client::shard() const {
  RQ_CHECK(process_.running());
  return *static_cast<Shard*>(process_.shard());
}

bool Client::connect(std::string_view address, std::string_view magic, std::int64_t limit_ms) {
  bool answer = true, keep = false;
  if (process_.running()) {
    answer = shard().answer_heartbeats_;
    keep = shard().keep_heartbeats_;
    if (shard().link_.opened()) process_.kill();
  }
  process_.start();
  Shard& fresh = shard();
  fresh.answer_heartbeats_ = answer;
  fresh.keep_heartbeats_ = keep;
  fresh.framed_ = !magic.empty();
  fresh.link_.send(magic);
  fresh.open(address, world_.now() + limit_ms * kMillisecond);
  process_.poke();
  world_.run_until([&] { return connected() || closed(); }, limit_ms * kMillisecond);
  return connected();
}

void Client::push(std::string_view bytes) {
  shard().send(bytes);
  process_.poke();
}
void Client::send(std::string_view bytes) { push(bytes); }
void Client::send_split(std::string_view bytes, std::size_t piece) {
  RQ_CHECK(piece > 0);
  for (std::size_t at = 0; at < bytes.size(); at += piece) shard().link_.send_piece(bytes.substr(at, piece));
  process_.poke();
}
std::string Client::tls_hello(std::string_view common_name) { return std::string("TLS hello ").append(common_name).append("\n"); }
void Client::start_tls(std::string_view common_name) {
  send_plain(tls_hello(common_name));
  await_tls();
}
void Client::await_tls() {
  shard().awaits_tls_ = true;
  shard().begin_layer();
  process_.poke();
}
void Client::compress(Compression kind) {
  shard().encoder_ = kind == Compression::snappy ? codec::snappy_encoder() : codec::deflate_encoder(6);
  shard().decoder_ = kind == Compression::snappy ? codec::snappy_decoder() : codec::deflate_decoder();
  shard().begin_layer();
  process_.poke();
}
void Client::send_plain(std::string_view bytes) {
  shard().link_.send(bytes);
  process_.poke();
}
void Client::shutdown_write() {
  shard().link_.shutdown_write();
  process_.poke();
}
void Client::close() {
  shard().link_.close();
  process_.poke();
}
void Client::stop_reading(bool stop) {
  shard().link_.reading = !stop;
  process_.poke();
}
void Client::answer_heartbeats(bool answer) { shard().answer_heartbeats_ = answer; }
void Client::keep_heartbeats(bool keep) { shard().keep_heartbeats_ = keep; }

const std::vector<Frame>& Client::frames() const { return shard().frames_; }
std::vector<Frame> Client::take_frames() { return std::exchange(shard().frames_, {}); }
const std::string& Client::raw() const { return shard().raw_; }
std::uint64_t Client::heartbeats() const { return shard().heartbeats_; }
bool Client::connected() const { return process_.running() && shard().link_.connected() && !shard().link_.ended(); }
bool Client::closed() const { return process_.running() && shard().link_.ended(); }
bool Client::was_reset() const { return process_.running() && shard().link_.was_reset(); }
std::string Client::local_address() const { return process_.host()->net.local_address(shard().link_.stream()); }

std::vector<Message> Client::messages() const {
  std::vector<Message> out;
  for (const Frame& frame : frames())
    if (auto message = message_of(frame)) out.push_back(std::move(*message));
  return out;
}

bool Client::wait_frames(std::size_t count, std::int64_t limit_ms) {
  return world_.run_until([&] { return frames().size() >= count; }, limit_ms * kMillisecond);
}
bool Client::wait_messages(std::size_t count, std::int64_t limit_ms) {
  const auto is_message = [](const Frame& frame) { return frame.type == 2; };
  return world_.run_until(
      [&] { return static_cast<std::size_t>(std::count_if(frames().begin(), frames().end(), is_message)) >= count; },
      limit_ms * kMillisecond);
}
bool Client::wait_closed(std::int64_t limit_ms) {
  return world_.run_until([&] { return closed(); }, limit_ms * kMillisecond);
}

Frame Client::answer(std::int64_t limit_ms) {
  std::vector<Frame>& frames = shard().frames_;
  const auto is_answer = [](const Frame& frame) { return frame.type != 2; };
  world_.run_until([&] { return closed() || std::any_of(frames.begin(), frames.end(), is_answer); }, limit_ms * kMillisecond);
  const auto at = std::find_if(frames.begin(), frames.end(), is_answer);
  if (at == frames.end()) return {};
  Frame frame = std::move(*at);
  frames.erase(at);
  return frame;
}

std::optional<Message> Client::message(std::int64_t limit_ms) {
  std::vector<Frame>& frames = shard().frames_;
  const auto is_message = [](const Frame& frame) { return frame.type == 2; };
  world_.run_until([&] { return closed() || std::any_of(frames.begin(), frames.end(), is_message); }, limit_ms * kMillisecond);
  const auto at = std::find_if(frames.begin(), frames.end(), is_message);
  if (at == frames.end()) return std::nullopt;
  const std::optional<Message> message = message_of(*at);
  frames.erase(at);
  return message;
}

void Client::identify(std::string_view json) { push(identify_command(json)); }
void Client::pub(std::string_view topic, std::string_view body) { push(pub_command(topic, body)); }
void Client::mpub(std::string_view topic, const std::vector<std::string>& bodies) { push(mpub_command(topic, bodies)); }
void Client::dpub(std::string_view topic, std::int64_t defer_ms, std::string_view body) {
  push(dpub_command(topic, defer_ms, body));
}
void Client::sub(std::string_view topic, std::string_view channel) {
  push(std::string("SUB ").append(topic).append(" ").append(channel).append("\n"));
}
void Client::rdy(std::uint64_t count) { push("RDY " + std::to_string(count) + "\n"); }
void Client::fin(std::string_view id) { push(std::string("FIN ").append(id).append("\n")); }
void Client::req(std::string_view id, std::int64_t delay_ms) {
  push(std::string("REQ ").append(id).append(" ").append(std::to_string(delay_ms)).append("\n"));
}
void Client::touch(std::string_view id) { push(std::string("TOUCH ").append(id).append("\n")); }
void Client::nop() { push("NOP\n"); }
void Client::cls() { push("CLS\n"); }

}  // namespace rq::sim
