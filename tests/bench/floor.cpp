// floor: the least that a single-loop durable NSQ server can do on a machine. No format, no recovery, no limits: not a product,
// a ruler. What it reaches with qload, in the same run, bounds what a real Broker can reach there.
//   g++ -O2 -std=c++20 floor.cpp -o floor -lisal -lpthread -lssl -lcrypto -lz -lsnappy
//   floor PORT FILE durable|relaxed [HOLD_US [CERTIFICATE KEY]]   PUB and MPUB: append, one barrier for all that arrived, answer
//                                                  (relaxed: answer after the append, a barrier every 10 ms beside it)
//                                                  SUB and RDY: 1 KiB messages from memory, FINs counted, not stored
// Over TLS (with a certificate), Snappy or Deflate when IDENTIFY asks for one of them (floor_layers.hpp).
// HOLD_US (default 300): after a barrier, wait at most this long for the publishers just answered before starting the next one.
// That alone raised 16 closed-loop publishers by half here: without it they split into two groups that take turns.
#include <arpa/inet.h>
#include <fcntl.h>
#include <isa-l.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "floor_layers.hpp"
struct Conn {
  int fd;
  std::string in, out;
  bool magic = false, consumer = false, armed = false;
  long credit = 0, rdy = 0;
  Layer layer = {};
};
static uint32_t get32(const char* p) {
  return uint32_t(uint8_t(p[0])) << 24 | uint32_t(uint8_t(p[1])) << 16 | uint32_t(uint8_t(p[2])) << 8 | uint8_t(p[3]);
}
static uint64_t now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000 + uint64_t(t.tv_nsec) / 1000;
}
static int ep;
static void watch(int op, int fd, void* who, uint32_t events) {
  epoll_event e{};
  e.events = events;
  e.data.ptr = who;
  epoll_ctl(ep, op, fd, &e);
}
static void flush(Conn* c) {
  size_t at = 0;
  if (!c->out.empty()) c->layer.encode(c->out);
  while (at < c->out.size()) {
    ssize_t n = c->layer.send(c->fd, c->out.data() + at, c->out.size() - at);
    if (n <= 0 && !c->layer.plain()) _exit(4);  // so few bytes fit into any socket; half of a layer's cannot wait
    if (n <= 0) break;
    at += size_t(n);
  }
  c->out.erase(0, at);
  if (c->armed != !c->out.empty()) {
    c->armed = !c->out.empty();
    watch(EPOLL_CTL_MOD, c->fd, c, EPOLLIN | (c->armed ? EPOLLOUT : 0u));
  }
}
static const char ok[] = "\0\0\0\6\0\0\0\0OK";
static void identify(Conn* c, std::string_view body, SSL_CTX* tls) {
  if (body.find("\"feature_negotiation\":true") == std::string_view::npos) {
    c->out.append(ok, 10);
    return;
  }
  const std::string answer = c->layer.negotiate(body, tls != nullptr);
  const char head[8] = {0, 0, char((answer.size() + 4) >> 8), char(answer.size() + 4)};
  c->out.append(head, 8).append(answer);
  flush(c);
  if (!c->layer.begin(c->fd, tls)) return;
  c->out.append(ok, 10);
  flush(c);
  int flags = fcntl(c->fd, F_GETFL);
  fcntl(c->fd, F_SETFL, flags | O_NONBLOCK);
}
int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const bool durable = !strcmp(argv[3], "durable");
  const uint64_t hold_us = argc > 4 ? uint64_t(atol(argv[4])) : 300;
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, wake = eventfd(0, EFD_NONBLOCK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(atoi(argv[1])));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) || listen(listener, 256)) return 1;
  SSL_CTX* tls = argc > 6 ? SSL_CTX_new(TLS_server_method()) : nullptr;
  if (tls &&
      (SSL_CTX_use_certificate_chain_file(tls, argv[5]) != 1 || SSL_CTX_use_PrivateKey_file(tls, argv[6], SSL_FILETYPE_PEM) != 1))
    return 1;
  if (tls) SSL_CTX_set_read_ahead(tls, 1), SSL_CTX_set_num_tickets(tls, 0);
  int file = open(argv[2], O_CREAT | O_WRONLY | O_APPEND | O_TRUNC, 0644);
  ep = epoll_create1(0);
  watch(EPOLL_CTL_ADD, listener, &listener, EPOLLIN);
  watch(EPOLL_CTL_ADD, wake, &wake, EPOLLIN);
  std::mutex m;
  std::condition_variable cv;
  bool job = false;
  std::string batch;
  std::thread disk([&] {
    for (;;) {
      std::unique_lock l(m);
      cv.wait(l, [&] { return job; });
      job = false;
      std::string b;
      b.swap(batch);
      l.unlock();
      for (size_t at = 0; at < b.size();) {
        ssize_t n = write(file, b.data() + at, b.size() - at);
        if (n < 0) _exit(3);
        at += size_t(n);
      }
      if (durable) fdatasync(file);
      b.clear();
      l.lock();
      if (!job) batch.swap(b);
      l.unlock();
      uint64_t v = 1;
      (void)!write(wake, &v, 8);
    }
  });
  std::thread background([&] {
    while (!durable) {
      usleep(10000);
      fdatasync(file);
    }
  });
  std::string frame(4 + 4 + 26 + 1024, 'm');
  const unsigned char head[8] = {0, 0, 4, 30, 0, 0, 0, 2};
  memcpy(frame.data(), head, 8);
  frame[16] = 0, frame[17] = 1;
  std::string pending;
  std::vector<Conn*> waiting, running;
  bool busy = false;
  size_t expected = 0;
  uint64_t due = 0;
  std::string buf(1 << 18, 0);
  epoll_event evs[256];
  for (;;) {
    const bool holding = !busy && !pending.empty();
    timespec left{};
    if (holding) {
      uint64_t t = now_us();
      left.tv_nsec = long(due > t ? due - t : 0) * 1000;
    }
    int n = epoll_pwait2(ep, evs, 256, holding ? &left : nullptr, nullptr);
    for (int i = 0; i < n; ++i) {
      if (evs[i].data.ptr == &listener) {
        int fd = accept(listener, nullptr, nullptr);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(EPOLL_CTL_ADD, fd, new Conn{fd, {}, {}}, EPOLLIN);
        continue;
      }
      if (evs[i].data.ptr == &wake) {
        uint64_t v;
        (void)!read(wake, &v, 8);
        busy = false;
        expected = running.size() + waiting.size();
        due = now_us() + hold_us;
        for (Conn* c : running) c->out.append(ok, 10);
        for (Conn* c : running)
          if (!c->out.empty()) flush(c);
        running.clear();
        continue;
      }
      Conn* c = static_cast<Conn*>(evs[i].data.ptr);
      if (evs[i].events & EPOLLOUT) flush(c);
      if (!(evs[i].events & EPOLLIN)) continue;
      ssize_t got = c->layer.receive(c->fd, buf, c->in);
      if (got <= 0) {
        if (got == 0) close(c->fd);
        continue;
      }
      size_t at = 0;
      if (!c->magic) {
        if (c->in.size() < 4) continue;
        c->magic = true;
        at = 4;
      }
      for (;;) {
        size_t nl = c->in.find('\n', at);
        if (nl == std::string::npos) break;
        const char kind = c->in[at];
        if (kind == 'P' || kind == 'M' || kind == 'I') {
          if (c->in.size() < nl + 5) break;
          uint32_t len = get32(c->in.data() + nl + 1);
          if (c->in.size() < nl + 5 + len) break;
          if (kind == 'I') {
            identify(c, std::string_view(c->in).substr(nl + 5, len), tls);
          } else {
            char h[52] = {};
            uint32_t crc = crc32_iscsi(reinterpret_cast<unsigned char*>(c->in.data() + nl + 5), int(len), ~0u);
            memcpy(h + 44, &crc, 4);
            pending.append(h, 52);
            pending.append(c->in, nl + 5, len);
            waiting.push_back(c);
          }
          at = nl + 5 + len;
          continue;
        }
        if (kind == 'R' && c->in.compare(at, 4, "RDY ") == 0)
          c->credit += atol(c->in.c_str() + at + 4) - c->rdy, c->rdy = atol(c->in.c_str() + at + 4);
        if (kind == 'S') c->consumer = true, c->out.append(ok, 10);
        if (kind == 'F') ++c->credit;
        at = nl + 1;
      }
      c->in.erase(0, at);
      for (; c->consumer && c->credit > 0; --c->credit) c->out += frame;
      if (!c->out.empty()) flush(c);
    }
    if (!busy && !pending.empty() && (waiting.size() >= expected || now_us() >= due)) {
      busy = true;
      running.swap(waiting);
      std::lock_guard l(m);
      batch.swap(pending);
      pending.clear();
      job = true;
      cv.notify_one();
    }
  }
}
