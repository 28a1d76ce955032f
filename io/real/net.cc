#include "io/real/net.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/real/errors.h"
#include "io/real/net_thread.h"

namespace rq::real {
namespace {

constexpr std::size_t kVectorMax = 1024;  // IOV_MAX

std::uint32_t index_of(io::StreamId id) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id)) - 1; }
io::StreamId make_id(std::uint32_t generation, std::uint32_t index) {
  return static_cast<io::StreamId>(std::uint64_t{generation} << 32 | (std::uint64_t{index} + 1));
}

}  // namespace

void RealNet::stop() {
  for (const auto& thread : threads_) thread->stop();
}

// ---- handles

const RealNet::Slot* RealNet::find(io::StreamId id) const {
  const std::uint32_t index = index_of(id);
  if (index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  const bool open = slot.kind != Kind::free && slot.kind != Kind::closing;
  return open && make_id(slot.generation, index) == id ? &slot : nullptr;
}

RealNet::Slot* RealNet::find(io::StreamId id) { return const_cast<Slot*>(static_cast<const RealNet*>(this)->find(id)); }

RealNet::Slot* RealNet::find_stream(io::StreamId id) {
  Slot* slot = find(id);
  return slot != nullptr && slot->kind == Kind::stream ? slot : nullptr;
}

io::StreamId RealNet::id_of(const Slot& slot) const { return make_id(slot.generation, slot.endpoint.slot); }

io::StreamId RealNet::add(int fd, Kind kind) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back().endpoint.slot = free_.back();
  }
  Slot& slot = slots_[free_.back()];
  const io::StreamId id = id_of(slot);
  slot.endpoint.socket.open(fd);
  if (kind == Kind::stream) slot.endpoint.socket.connected();
  const bool added = kind == Kind::stream && threaded() ? place(slot) : ready_.add(fd, static_cast<std::uint64_t>(id));
  if (!added) {
    slot.endpoint.socket.open(-1);
    return io::StreamId::none;
  }
  free_.pop_back();
  slot.fd = fd;
  slot.kind = kind;
  return id;
}

bool RealNet::place(Slot& slot) {
  const auto fewest = std::min_element(threads_.begin(), threads_.end(),
                                       [](const auto& a, const auto& b) { return a->streams() < b->streams(); });
  if (!(*fewest)->add(slot.endpoint)) return false;
  slot.thread = fewest->get();
  return true;
}

// Listeners and connects that failed; a stream goes through its endpoint.
void RealNet::drop(Slot& slot) {
  ::close(slot.fd);
  slot.endpoint.socket.open(-1);
  closed(slot.endpoint);
}

void RealNet::closed(Endpoint& endpoint) {
  Slot& slot = slot_of(endpoint);
  RQ_CHECK(slot.read == nullptr && slot.write == nullptr && slot.handshake == nullptr && slot.entry == nullptr);
  endpoint.pieces = {};
  slot.fd = -1;
  slot.kind = Kind::free;
  ++slot.generation;
  slot.thread = nullptr;
  slot.deadline = Instant::never();
  slot.peer = {};
  slot.agreed.reset();
  free_.push_back(endpoint.slot);
}

void RealNet::stale(io::Op& op, const char* name) {
  ++counters_.stale_calls;
  turn_.complete(op, {io::Errc::cancelled, 0, name});
}

// ---- calls on streams

void RealNet::order(Slot& slot, Call call) {
  call.endpoint = &slot.endpoint;
  if (slot.thread != nullptr) return slot.thread->hand_over(std::move(call));
  perform(call, *this);
}

void RealNet::read_some(io::ReadOp& op, io::StreamId id, ChunkPool& pool) {
  io::submit(op);
  op.data = {};
  Slot* slot = find_stream(id);
  if (slot == nullptr) return stale(op, "read_some");
  RQ_CHECK(slot->read == nullptr);
  (op.midway ? asked_midway_ : asked_afresh_) = true;
  slot->read = &op;
  order(*slot, {Call::Kind::read, nullptr, &pool});
}

void RealNet::write_some(io::Op& op, io::StreamId id, std::span<const ConstBuf> pieces) {
  io::submit(op);
  Slot* slot = find_stream(id);
  if (slot == nullptr) return stale(op, "write_some");
  RQ_CHECK(slot->write == nullptr);
  std::vector<iovec>& unsent = slot->endpoint.pieces;
  unsent.clear();
  for (const ConstBuf& piece : pieces) {
    if (piece.empty()) continue;
    if (unsent.size() == kVectorMax) break;
    unsent.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  RQ_CHECK(!unsent.empty());
  slot->write = &op;
  order(*slot, {Call::Kind::write});
}

void RealNet::start_tls(io::Op& op, io::StreamId id, std::span<const ConstBuf> leftover, Instant deadline) {
  io::submit(op);
  Slot* slot = find_stream(id);
  if (slot == nullptr) return stale(op, "tls");
  if (tls_server_ == nullptr) return turn_.complete(op, {io::Errc::tls, 0, "tls"});
  auto machine = std::make_unique<TlsMachine>(*tls_server_);
  for (const ConstBuf piece : leftover) machine->feed(piece);
  begin_handshake(*slot, op, std::move(machine), deadline);
}

void RealNet::start_tls_client(io::Op& op, io::StreamId id, std::string_view server_name, Instant deadline) {
  io::submit(op);
  Slot* slot = find_stream(id);
  if (slot == nullptr) return stale(op, "tls");
  if (tls_client_ == nullptr) tls_client_ = tls_client_context().value_or(nullptr);
  if (tls_client_ == nullptr) return turn_.complete(op, {io::Errc::tls, 0, "tls"});
  const std::string name(server_name);
  begin_handshake(*slot, op, std::make_unique<TlsMachine>(*tls_client_, &name), deadline);
}

void RealNet::begin_handshake(Slot& slot, io::Op& op, std::unique_ptr<TlsMachine> machine, Instant deadline) {
  RQ_CHECK(slot.read == nullptr && slot.write == nullptr && slot.handshake == nullptr);
  slot.handshake = &op;
  slot.deadline = deadline;
  handshaking_.push_back(id_of(slot));
  order(slot, {Call::Kind::handshake, nullptr, nullptr, std::move(machine)});
}

void RealNet::shutdown_write(io::StreamId id) {
  Slot* slot = find_stream(id);
  if (slot == nullptr) {
    ++counters_.stale_calls;
    return;
  }
  order(*slot, {Call::Kind::end_output});
}

void RealNet::close(io::StreamId id) {
  Slot* slot = find(id);
  if (slot == nullptr) {
    ++counters_.stale_calls;
    return;
  }
  if (slot->kind == Kind::connecting) return finish_connect(*slot, {io::Errc::cancelled, 0, "connect"});
  if (slot->kind == Kind::listener) {
    if (slot->entry != nullptr) turn_.complete(*std::exchange(slot->entry, nullptr), {io::Errc::cancelled, 0, "close"});
    return drop(*slot);
  }
  std::erase(handshaking_, id);
  slot->kind = Kind::closing;
  order(*slot, {Call::Kind::close});
}

io::PeerInfo RealNet::info(io::StreamId id) const {
  const Slot* slot = find(id);
  io::PeerInfo info;
  if (slot == nullptr) return info;
  if (slot->agreed != nullptr) info = *slot->agreed;
  info.address = slot->peer;
  return info;
}

std::string RealNet::local_address(io::StreamId id) const {
  const Slot* slot = find(id);
  SocketAddress address;
  address.length = sizeof address.storage;
  if (slot == nullptr || ::getsockname(slot->fd, address.get(), &address.length) != 0) return {};
  return format_address(address);
}

// ---- what became of them

// A call that was outstanding at close() is cancelled, even if it was through on another thread.
void RealNet::complete(const Slot& slot, io::Op& op, io::Error error, std::uint64_t value) {
  if (slot.kind == Kind::closing) return turn_.complete(op, {io::Errc::cancelled, 0, "close"});
  turn_.complete(op, error, value);
}

Chunk* RealNet::take_chunk(Endpoint& endpoint) { return endpoint.pool->take(); }

void RealNet::give_back(Chunk* chunk) { release_chunk(chunk); }

void RealNet::read_done(Endpoint& endpoint, ChunkPool&, io::Error error, Chunk* chunk, std::uint32_t bytes) {
  Slot& slot = slot_of(endpoint);
  io::ReadOp& op = *std::exchange(slot.read, nullptr);
  if (chunk != nullptr) {
    Slice data(chunk, chunk->data(), bytes);
    if (slot.kind != Kind::closing) op.data = std::move(data);
  }
  complete(slot, op, error, bytes);
}

void RealNet::write_done(Endpoint& endpoint, io::Error error, std::uint64_t bytes) {
  Slot& slot = slot_of(endpoint);
  complete(slot, *std::exchange(slot.write, nullptr), error, bytes);
}

void RealNet::handshake_done(Endpoint& endpoint, io::Error error, std::unique_ptr<io::PeerInfo> agreed) {
  Slot& slot = slot_of(endpoint);
  if (slot.handshake == nullptr) return;  // its deadline came first
  std::erase(handshaking_, id_of(slot));
  slot.deadline = Instant::never();
  slot.agreed = std::move(agreed);
  complete(slot, *std::exchange(slot.handshake, nullptr), error, 0);
}

// ---- readiness, deadlines, threads

bool RealNet::collect() {
  epoll_event events[Readiness::kBatch];
  const int count = ready_.take(events);
  for (int i = 0; i < count; ++i) on_ready(static_cast<io::StreamId>(events[i].data.u64), events[i].events);
  return count == Readiness::kBatch;
}

void RealNet::on_ready(io::StreamId id, std::uint32_t events) {
  Slot* slot = find(id);
  if (slot == nullptr) return;
  if (slot->kind == Kind::stream) return slot->endpoint.ready(events, *this);
  slot->endpoint.socket.note(events);
  if (slot->kind == Kind::connecting) return on_connect(*slot);
  if (slot->endpoint.socket.readable() && slot->entry != nullptr) try_accept(*slot);
}

Instant RealNet::next_deadline() const {
  Instant first = Instant::never();
  for (const io::StreamId id : connecting_) first = std::min(first, find(id)->deadline);
  for (const io::StreamId id : handshaking_) first = std::min(first, find(id)->deadline);
  return std::min(first, lookups_.next_deadline());
}

void RealNet::expire(Instant now) {
  lookups_.expire(now);
  for (std::size_t i = 0; i < connecting_.size();) {
    Slot& slot = *find(connecting_[i]);
    if (slot.deadline > now) {
      ++i;
    } else {
      finish_connect(slot, {io::Errc::timed_out, 0, "connect"});
    }
  }
  for (std::size_t i = 0; i < handshaking_.size();) {
    Slot& slot = *find(handshaking_[i]);
    if (slot.deadline > now) {
      ++i;
    } else {
      handshake_done(slot.endpoint, {io::Errc::timed_out, 0, "tls"}, nullptr);
    }
  }
}

bool RealNet::take_midway() {
  const bool afresh = std::exchange(asked_afresh_, false);
  return std::exchange(asked_midway_, false) && !afresh && !threaded();
}

bool RealNet::has_results() const {
  return std::any_of(threads_.begin(), threads_.end(), [](const auto& thread) { return thread->has_results(); });
}

void RealNet::collect_results() {
  for (const auto& thread : threads_) {
    if (thread->has_results()) thread->collect(*this);
  }
}

void RealNet::flush() {
  for (const auto& thread : threads_) thread->flush();
}

std::size_t RealNet::lent_chunks() const {
  std::size_t sum = 0;
  for (const auto& thread : threads_) sum += thread->lent();
  return sum;
}

}  // namespace rq::real
