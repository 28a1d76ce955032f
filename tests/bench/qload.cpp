// qload: one load generator for every NSQ V2 server, so that figures compare.
// One thread, epoll, raw frames; it costs far less CPU than any server under test.
//   g++ -O2 -std=c++20 qload.cpp -o qload
//   qload pub  --port 4150 --topic t --conns 16 --size 1024 --count 50000 [--pid P]
//   qload mpub --port 4150 --topic t --conns 8 --size 1024 --batch 64 --count 500000
//   qload sub  --port 4150 --topic t --channel c --conns 4 --rdy 256 --count 500000
//   qload fan  --port 4150 --topic t --channels 10 --rdy 256 --count 100000   (publish with mpub first; each Channel gets all)
//   (--obt MS sets output_buffer_timeout; the server's default otherwise)
//   qload e2e  --port 4150 --topic t --channel c --rate 100 --secs 5          (publish to delivery, and publish to OK)
//   qload pace --port 4150 --topic t --rate 100 --secs 5                      (e2e without its consumer: publish to OK)
// Prints one JSON object: rate in messages per second, latencies in microseconds,
// server CPU microseconds per message and peak RSS when --pid is given.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>
using Clock = std::chrono::steady_clock;
static uint64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}
[[noreturn]] static void die(const std::string& why) {
  printf("{\"error\":\"%s\"}\n", why.c_str());
  exit(1);
}
static void put32(std::string& s, uint32_t v) {
  for (int i = 3; i >= 0; --i) s.push_back(char(v >> (8 * i)));
}
static uint32_t get32(const char* p) {
  return uint32_t(uint8_t(p[0])) << 24 | uint32_t(uint8_t(p[1])) << 16 | uint32_t(uint8_t(p[2])) << 8 | uint8_t(p[3]);
}
struct Conn {
  int fd = -1;
  std::string out, in;
  size_t out_at = 0;
  bool producer = false, want_write = false;
  std::deque<uint64_t> sent;  // time of each unanswered command
  uint64_t ready = 0;
};
static std::map<std::string, std::string> opt;
static long num(const char* k, long d) { return opt.count(k) ? atol(opt[k].c_str()) : d; }
static std::string str(const char* k, const char* d) { return opt.count(k) ? opt[k] : d; }
static int ep;
static void arm(Conn& c) {
  epoll_event e{};
  e.events = EPOLLIN | (c.want_write ? EPOLLOUT : 0u);
  e.data.ptr = &c;
  epoll_ctl(ep, EPOLL_CTL_MOD, c.fd, &e);
}
static void flush(Conn& c) {
  while (c.out_at < c.out.size()) {
    ssize_t n = send(c.fd, c.out.data() + c.out_at, c.out.size() - c.out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      c.out_at += size_t(n);
      continue;
    }
    if (errno == EAGAIN) {
      if (!c.want_write) {
        c.want_write = true;
        arm(c);
      }
      return;
    }
    die("send failed");
  }
  c.out.clear();
  c.out_at = 0;
  if (c.want_write) {
    c.want_write = false;
    arm(c);
  }
}
static void open_conn(Conn& c) {
  c.fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(num("port", 4150)));
  inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
  if (connect(c.fd, reinterpret_cast<sockaddr*>(&a), sizeof a)) die("connect failed");
  int one = 1;
  setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::string body = std::string(
                         "{\"client_id\":\"qload\",\"hostname\":\"qload\",\"user_agent\":\"qload/"
                         "1\",\"feature_negotiation\":false,\"heartbeat_interval\":30000") +
                     (opt.count("obt") ? ",\"output_buffer_timeout\":" + opt["obt"] : std::string()) + "}";
  c.out = "  V2IDENTIFY\n";
  put32(c.out, uint32_t(body.size()));
  c.out += body;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &c;
  epoll_ctl(ep, EPOLL_CTL_ADD, c.fd, &e);
  flush(c);
  char buf[64];
  size_t got = 0;
  while (got < 10) {  // size(4) type(4) "OK"
    ssize_t n = recv(c.fd, buf + got, 10 - got, 0);
    if (n <= 0) die("no answer to IDENTIFY");
    got += size_t(n);
  }
  if (memcmp(buf + 8, "OK", 2)) die("IDENTIFY refused");
}
struct Usage {
  double cpu_us = 0;
  long rss_kb = 0, peak_kb = 0;
};
static Usage usage(long pid) {
  Usage u;
  if (!pid) return u;
  std::ifstream f("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(f, line);
  std::istringstream s(line.substr(line.rfind(')') + 2));
  std::string w;
  long t = 0;
  for (int i = 3; s >> w; ++i)
    if (i == 14 || i == 15) t += atol(w.c_str());
  u.cpu_us = double(t) * 1e6 / double(sysconf(_SC_CLK_TCK));
  std::ifstream g("/proc/" + std::to_string(pid) + "/status");
  while (std::getline(g, line)) {
    if (!line.compare(0, 6, "VmRSS:")) u.rss_kb = atol(line.c_str() + 6);
    if (!line.compare(0, 6, "VmHWM:")) u.peak_kb = atol(line.c_str() + 6);
  }
  return u;
}
static uint64_t pct(std::vector<uint64_t>& v, double p) {
  if (v.empty()) return 0;
  size_t k = std::min(v.size() - 1, size_t(double(v.size()) * p));
  std::nth_element(v.begin(), v.begin() + long(k), v.end());
  return v[k];
}
int main(int argc, char** argv) {
  if (argc < 2) die("usage: qload pub|mpub|sub|fan|e2e|pace --key value ...");
  std::string mode = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) opt[argv[i] + 2] = argv[i + 1];
  ep = epoll_create1(0);
  const std::string topic = str("topic", "qload"), channel = str("channel", "c");
  const bool paced = mode == "e2e" || mode == "pace";
  const bool publishes = mode == "pub" || mode == "mpub" || paced;
  const bool consumes = mode == "sub" || mode == "fan" || mode == "e2e";
  const long channels = mode == "fan" ? num("channels", 10) : 1;
  const long n_pub = publishes ? (paced ? 1 : num("conns", 16)) : 0;
  const long n_sub = consumes ? (mode == "pub" ? 0 : mode == "e2e" ? 1 : num("conns", mode == "fan" ? 1 : 4)) * channels : 0;
  const long size = num("size", 1024), batch = mode == "mpub" ? num("batch", 64) : 1, rdy = num("rdy", 256);
  const long window = num("window", 1), pid = num("pid", 0), timeout_s = num("timeout", 120);
  const double rate = double(num("rate", 100));
  const long count = paced ? long(rate * double(num("secs", 5))) : num("count", 50000);
  const long want = consumes ? count * channels : 0;
  std::vector<Conn> conns(size_t(n_pub + n_sub));
  for (size_t i = 0; i < conns.size(); ++i) {
    open_conn(conns[i]);
    conns[i].producer = long(i) < n_pub;
  }
  std::string payload(size_t(size), 'x');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = char('a' + (i * 7 + i / 13) % 26);
  std::string command;
  if (batch == 1) {
    command = "PUB " + topic + "\n";
    put32(command, uint32_t(size));
    command += payload;
  } else {
    command = "MPUB " + topic + "\n";
    put32(command, uint32_t(4 + batch * (4 + size)));
    put32(command, uint32_t(batch));
    for (long i = 0; i < batch; ++i) {
      put32(command, uint32_t(size));
      command += payload;
    }
  }
  const size_t stamp_at = command.size() - payload.size();
  std::vector<uint64_t> ack, deliver;
  uint64_t ack_at = 0, ack_gap = 0;
  long sent = 0, acked = 0, received = 0, redelivered = 0;
  Usage before = usage(pid);
  uint64_t start = now_us(), last = start;
  for (size_t i = size_t(n_pub); i < conns.size(); ++i) {
    std::string ch = channels > 1 ? channel + std::to_string((long(i) - n_pub) % channels) : channel;
    conns[i].out += "SUB " + topic + " " + ch + "\nRDY " + std::to_string(rdy) + "\n";
    flush(conns[i]);
  }
  auto publish = [&](Conn& c) {
    std::string& dst = c.out;
    size_t at = dst.size();
    dst += command;
    uint64_t t = now_us();
    if (mode == "e2e" && size >= 8) memcpy(dst.data() + at + stamp_at, &t, 8);
    c.sent.push_back(t);
    sent += batch;
  };
  if (publishes && !paced)
    for (long i = 0; i < n_pub; ++i) {
      for (long w = 0; w < window && sent < count; ++w) publish(conns[size_t(i)]);
      flush(conns[size_t(i)]);
    }
  std::vector<char> buf(1 << 20);
  epoll_event ev[256];
  while (true) {
    if ((!publishes || acked >= count) && (!consumes || received >= want)) break;
    uint64_t t = now_us();
    if (t - last > uint64_t(timeout_s) * 1000000) break;
    int wait = 1000;
    if (paced && sent < count) {
      uint64_t due = start + 200000 + uint64_t(double(sent) * 1e6 / rate);
      if (t >= due) {
        publish(conns[0]);
        flush(conns[0]);
        wait = 0;
      } else
        wait = int((due - t) / 1000);
      if (wait > 0 && wait < 2) wait = 0;
    }
    int n = epoll_wait(ep, ev, 256, wait);
    for (int k = 0; k < n; ++k) {
      Conn& c = *static_cast<Conn*>(ev[k].data.ptr);
      if (ev[k].events & EPOLLIN) {
        ssize_t got = recv(c.fd, buf.data(), buf.size(), MSG_DONTWAIT);
        if (got == 0) die("server closed a connection");
        if (got > 0) {
          c.in.append(buf.data(), size_t(got));
          last = now_us();
          size_t at = 0;
          while (c.in.size() - at >= 8) {
            uint32_t len = get32(c.in.data() + at);
            if (c.in.size() - at < 4 + size_t(len)) break;
            uint32_t type = get32(c.in.data() + at + 4);
            const char* body = c.in.data() + at + 8;
            if (type == 1) die("server answered " + std::string(body, len - 4));
            if (type == 0 && len - 4 == 11 && !memcmp(body, "_heartbeat_", 11))
              c.out += "NOP\n";
            else if (type == 0 && c.producer) {
              const uint64_t answered = now_us();
              ack.push_back(answered - c.sent.front());
              if (ack_at) ack_gap = std::max(ack_gap, answered - ack_at);
              ack_at = answered;
              c.sent.pop_front();
              acked += batch;
              if (!paced && sent < count) publish(c);
            } else if (type == 2) {
              ++received;
              if (body[8] != 0 || body[9] != 1) ++redelivered;
              if (mode == "e2e") {
                uint64_t t0;
                memcpy(&t0, body + 26, 8);
                deliver.push_back(now_us() - t0);
              }
              c.out += "FIN ";
              c.out.append(body + 10, 16);
              c.out += "\n";
            }
            at += 4 + len;
          }
          c.in.erase(0, at);
        }
      }
      if (!c.out.empty()) flush(c);
    }
  }
  double secs = double(last - start) / 1e6;
  Usage after = usage(pid);
  long total = consumes && mode != "e2e" ? received : acked;
  double per = total ? (after.cpu_us - before.cpu_us) / double(total) : 0;
  printf("{\"mode\":\"%s\",\"messages\":%ld,\"seconds\":%.3f,\"per_second\":%.0f", mode.c_str(), total, secs,
         double(total) / secs);
  if (!ack.empty())
    printf(",\"ack_p50_us\":%lu,\"ack_p99_us\":%lu,\"ack_p999_us\":%lu,\"longest_ack_gap_us\":%lu", pct(ack, .5), pct(ack, .99),
           pct(ack, .999), ack_gap);
  if (!deliver.empty())
    printf(",\"e2e_p50_us\":%lu,\"e2e_p99_us\":%lu,\"e2e_p999_us\":%lu", pct(deliver, .5), pct(deliver, .99), pct(deliver, .999));
  if (consumes) printf(",\"redelivered\":%ld,\"missing\":%ld", redelivered, want - received);
  if (pid) printf(",\"server_cpu_us_per_message\":%.2f,\"rss_kb\":%ld,\"peak_rss_kb\":%ld", per, after.rss_kb, after.peak_kb);
  printf("}\n");
  return (publishes && acked < count) || (consumes && received < want);
}
