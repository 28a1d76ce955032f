// The ports: everything that the core touches. io/real implements them on Asio and POSIX files, io/sim under a seed.
//
// Rules
//  I1 No call completes inline: the Op is delivered later, at depth 0 of a turn (core/io/turn.h).
//  I2 An Op in flight is a member of the machine that waits for it and pins its owner; buffers and paths passed by span or
//     string_view: paths are copied by the port, data buffers stay valid and unchanged until the Op was delivered.
//  I3 Stale handles (closed streams, closed files) complete with Errc::cancelled and are counted; they are never an error.
//  I4 Appends to one file happen in the order of submission. A barrier covers every append submitted before it to its files and
//     fails if one of those failed or was short.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/base/random.h"
#include "core/base/slice.h"
#include "core/base/time.h"

namespace rq::io {

enum class Errc : std::uint16_t {
  ok,
  eof,          // stream: peer finished writing; file: nothing at that offset
  cancelled,    // the handle was closed while the call was on its way
  no_space,     // ENOSPC, EDQUOT
  no_handles,   // EMFILE, ENFILE: close something and try again; not a storage fault
  io,           // any other failure of a device
  reset,        // connection reset, broken pipe
  refused,      // connection refused
  timed_out,    // the deadline of a connect or of a TLS handshake passed
  not_found,    // no such file, directory or address
  exists,       // create_new on an existing name, remove_dir on a non-empty directory
  locked,       // another process holds the lock
  denied,       // permission
  tls,          // the TLS handshake failed, or a record was not decodable
  bad_address,  // not an IP:port literal (of connect: nor a name:port), or cannot be bound
};
const char* errc_name(Errc code) noexcept;

struct Error {
  Errc code = Errc::ok;
  std::int32_t os = 0;  // errno where there is one, for messages only
  const char* op = "";  // the call, a string literal
  explicit operator bool() const { return code != Errc::ok; }
};

enum class FileId : std::uint64_t { none = 0 };
enum class StreamId : std::uint64_t { none = 0 };

enum class OpenMode : std::uint8_t {
  read,        // existing file, positioned reads only
  append,      // write at the end; created if missing
  append_new,  // as append, but Errc::exists when the name is taken (O_EXCL)
  rewrite,     // existing file: read, rewrite and truncate at any offset
  create,      // created or truncated to empty, append afterwards (for temporary files)
};
enum class Durability : std::uint8_t { data, full };  // fdatasync or fsync
struct BarrierFile {
  FileId file;
  Durability how = Durability::data;
};
enum class FileKind : std::uint8_t { file, directory, symlink, other };
struct Stat {
  FileKind kind = FileKind::file;
  std::uint64_t bytes = 0;
};
struct DirEntry {
  std::string name;
  FileKind kind = FileKind::file;  // symlinks are not followed
  std::uint64_t bytes = 0;         // 0 for everything but files
};
// Any number of shared locks, or an exclusive one.
enum class LockKind : std::uint8_t {
  exclusive,  // creates the file; mode rewrite
  shared,     // of a file that is there; mode read
};
struct DiskUsage {
  std::uint64_t total = 0;      // f_frsize * f_blocks
  std::uint64_t available = 0;  // f_frsize * f_bavail
};
struct PeerInfo {
  std::string address;  // "ip:port", IPv6 in brackets
  bool tls = false;
  std::string tls_version, tls_cipher, common_name;
};

// One asynchronous call. `done` runs at depth 0 of a later turn, with `in_flight` already false.
struct Op {
  Op* next = nullptr;  // for the port and the inbox
  void (*done)(Op&) noexcept = nullptr;
  void* self = nullptr;   // the machine that waits
  std::uint64_t tag = 0;  // free for the machine
  Error error{};
  std::uint64_t value = 0;  // file or stream handle, or byte count
  bool in_flight = false;

  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() { RQ_CHECK(!in_flight); }
  FileId file() const { return static_cast<FileId>(value); }
  StreamId stream() const { return static_cast<StreamId>(value); }
};
// A read from a stream; completes with a non-empty slice, or Errc::eof, or an error.
struct ReadOp : Op {
  Slice data;
  // Set by the machine: what the peer has sent so far ends inside a command that comes in many small pieces. A port may let them
  // gather for some tens of microseconds before it looks; it changes when bytes arrive and never which.
  bool midway = false;
};

// bind<&Session::on_read>(op, this): the member runs when the op is delivered.
template <auto Member>
struct Binder;
template <class T, class O, void (T::*Member)(O&)>
struct Binder<Member> {
  static void call(Op& op) noexcept { (static_cast<T*>(op.self)->*Member)(static_cast<O&>(op)); }
};
template <auto Member, class T>
void bind(Op& op, T* self) {
  op.done = &Binder<Member>::call;
  op.self = self;
}

struct Clock {
  virtual Instant now() const noexcept = 0;
  virtual WallTime wall() const noexcept = 0;

 protected:
  ~Clock() = default;
};

// One deadline a shard; the last call wins. Instant::never() disarms.
struct Waker {
  virtual void wake_at(Instant deadline) = 0;

 protected:
  ~Waker() = default;
};

// Paths are "/"-separated and relative to the process, or absolute.
struct Disk {
  virtual void open(Op&, std::string_view path, OpenMode) = 0;  // value: FileId
  virtual void close(Op&, FileId) = 0;
  virtual void read(Op&, FileId, std::uint64_t at, MutBuf) = 0;       // value: bytes read, short only at end of file
  virtual void append(Op&, FileId, std::span<const ConstBuf>) = 0;    // value: bytes written; the span itself is copied
  virtual void rewrite(Op&, FileId, std::uint64_t at, ConstBuf) = 0;  // value: bytes written
  virtual void truncate(Op&, FileId, std::uint64_t bytes) = 0;
  virtual void barrier(Op&, std::span<const BarrierFile>) = 0;               // see I4; the span itself is copied
  virtual void rename(Op&, std::string_view from, std::string_view to) = 0;  // replaces `to`
  virtual void unlink(Op&, std::string_view path) = 0;
  virtual void make_dir(Op&, std::string_view path) = 0;    // existing directory: ok
  virtual void remove_dir(Op&, std::string_view path) = 0;  // must be empty
  virtual void stat(Op&, std::string_view path, bool follow, Stat& out) = 0;
  virtual void list(Op&, std::string_view dir, std::vector<DirEntry>& out) = 0;  // sorted by bytes of the name
  virtual void sync_dir(Op&, std::string_view dir) = 0;
  // flock, non-blocking. value: FileId. Errc::locked when a process holds it in a way that excludes this one.
  virtual void lock(Op&, std::string_view path, LockKind) = 0;
  // FALLOC_FL_KEEP_SIZE; 0 gives all reserved blocks back. value: bytes reserved, 0 where the file system has no such call.
  virtual void reserve(Op&, FileId, std::uint64_t bytes) = 0;
  virtual void usage(Op&, std::string_view path, DiskUsage& out) = 0;

 protected:
  ~Disk() = default;
};

struct Net {
  virtual void listen(Op&, std::string_view address) = 0;  // "ip:port", port 0 = any; value: StreamId
  // value: StreamId. no_handles, or any other error, ends this call alone: the listener stays.
  virtual void accept(Op&, StreamId listener) = 0;
  // "ip:port" or "name:port"; value: StreamId. The deadline holds for the look-up of the name, too.
  virtual void connect(Op&, std::string_view address, Instant deadline) = 0;
  virtual void read_some(ReadOp&, StreamId, ChunkPool&) = 0;  // a chunk is taken only once bytes are there
  virtual void write_some(Op&, StreamId,
                          std::span<const ConstBuf>) = 0;  // value: bytes taken, at least 1; the span itself is copied
  // Becomes the server side of TLS on a stream without outstanding calls, as the world was configured. `leftover` was read before
  // and belongs to the new layer; its bytes are copied. Completes when the handshake has ended, with timed_out at the deadline
  // and tls when the peers do not agree; after an error the stream can only be closed. From then on calls move plain bytes, and
  // close and shutdown_write say so to the peer.
  virtual void start_tls(Op&, StreamId, std::span<const ConstBuf> leftover, Instant deadline) = 0;
  // The client side, with the certificate of `server_name` verified against the roots that the world was configured with: those
  // of the system, and a CA file beside them.
  virtual void start_tls_client(Op&, StreamId, std::string_view server_name, Instant deadline) = 0;
  virtual PeerInfo info(StreamId) const = 0;
  virtual std::string local_address(StreamId) const = 0;  // "ip:port" of a listener or stream
  virtual void shutdown_write(StreamId) = 0;              // after the writes that completed
  virtual void close(StreamId) = 0;                       // outstanding calls complete with cancelled

 protected:
  ~Net() = default;
};

// Runs a pure function over memory that it owns; the simulator completes it at a seeded later time.
struct Offload {
  virtual void run(Op&, void (*pure)(void*) noexcept, void* job) = 0;

 protected:
  ~Offload() = default;
};

// Switches planted bugs and forced rare paths on; null in production.
struct Chaos {
  virtual bool fire(const char* site, std::uint32_t per_1024) = 0;  // site: a string literal
  virtual bool planted(const char* bug) = 0;                        // true: behave wrongly on purpose, to test the oracles

 protected:
  ~Chaos() = default;
};

// Log events go out through here: stable event names with key=value fields; no bodies, no secrets.
enum class Level : std::uint8_t { debug, info, warn, error };
struct LogSink {
  virtual void log(Level, std::string_view event, std::string_view fields) = 0;

 protected:
  ~LogSink() = default;
};

struct Host {
  Clock& clock;
  Waker& waker;
  Disk& disk;
  Net& net;
  Offload& offload;
  LogSink& log;
  Random random;
  Chaos* chaos = nullptr;
};

inline bool planted(const Host& host, const char* bug) { return host.chaos != nullptr && host.chaos->planted(bug); }
inline bool buggify(const Host& host, const char* site, std::uint32_t per_1024) {
  return host.chaos != nullptr && host.chaos->fire(site, per_1024);
}

}  // namespace rq::io
