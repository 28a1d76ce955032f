// A connected TCP socket and the TLS on it: one step of each call at a time, without waiting. Whoever owns the socket, the loop
// or a network thread, takes the same steps.
//
//  I1 A step that is not `done` waits for the socket: it is tried again after an event that note() took.
//  I2 A write over TLS ends when the records that carry it were taken by the kernel; nothing is encrypted ahead.
//  I3 A broken pipe is an error, never a signal.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>

#include "core/io/ports.h"
#include "io/real/tls.h"

namespace rq::real {

struct Step {
  bool done = false;
  io::Error error{};
  std::uint64_t value = 0;  // bytes
};

class Socket {
 public:
  void open(int fd);  // takes the descriptor, which does not block; it waits for its first event
  // A new stream may be written at once and has usually something to read: only an attempt costs anything.
  void connected() { readable_ = writable_ = true; }
  int fd() const { return fd_; }
  bool readable() const { return readable_; }
  bool writable() const { return writable_; }
  void drained() { readable_ = false; }      // an accept found nothing more
  void note(std::uint32_t events);           // of epoll
  bool has_input() const;                    // a receive() may find something
  bool has_records() const;                  // something of TLS is to be sent
  Step receive(MutBuf into);                 // done: at least one byte, or Errc::eof, or an error
  Step send(std::span<const iovec> pieces);  // done: at least one byte was taken, or an error
  // TLS from here on; then handshake() until it is done.
  void begin_tls(std::unique_ptr<TlsMachine> machine) { tls_ = std::move(machine); }
  Step handshake();
  io::PeerInfo agreed() const;  // after the handshake: all but the address
  void flush_records();         // as many as the kernel takes
  void end_output();            // says goodbye, as far as the kernel takes it at once, and ends the own direction
  void close();

 private:
  enum class Moved : std::uint8_t { some, none, ended, broken };
  Moved feed_tls();            // one piece of records; broken: errno
  bool send_records(int& os);  // true: nothing is pending any more; os: errno of a failure
  void end_tls();
  Step receive_tls(MutBuf into);
  Step send_tls(std::span<const iovec> pieces);

  int fd_ = -1;
  bool readable_ = false, writable_ = false, hung_up_ = false;
  std::unique_ptr<TlsMachine> tls_;
  std::size_t plain_ = 0;  // of the write under way: bytes that the pending records carry
};

}  // namespace rq::real
