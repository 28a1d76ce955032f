// What lies between the floor's commands and its sockets: nothing, TLS, Snappy or Deflate, as IDENTIFY asked for it, at the least
// cost that libraries of the system allow. Answers are small: Deflate stores them, Snappy leaves them as they are. Bad input ends
// the program.
#pragma once

#include <isa-l.h>
#include <openssl/ssl.h>
#include <snappy.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

class Layer {
 public:
  bool plain() const { return kind_ == Kind::plain; }

  // Takes what IDENTIFY says; returns its answer, which leaves before begin().
  std::string negotiate(std::string_view identify, bool has_tls) {
    const auto wants = [&](std::string_view key) {
      return identify.find("\"" + std::string(key) + "\":true") != std::string_view::npos;
    };
    next_ = has_tls && wants("tls_v1") ? Kind::tls
            : wants("snappy")          ? Kind::snappy
            : wants("deflate")         ? Kind::deflate
                                       : Kind::plain;
    const auto flag = [&](Kind kind) { return next_ == kind ? "true" : "false"; };
    return std::string(
               R"({"max_rdy_count":2500,"version":"floor","max_msg_timeout":900000,"msg_timeout":60000,"deflate_level":6,)") +
           "\"tls_v1\":" + flag(Kind::tls) + ",\"snappy\":" + flag(Kind::snappy) + ",\"deflate\":" + flag(Kind::deflate) + "}";
  }
  // True when a layer lies there from now on; its OK follows.
  bool begin(int fd, SSL_CTX* tls) {
    kind_ = std::exchange(next_, Kind::plain);
    if (kind_ == Kind::deflate && inflateInit2(&inflater_, -15) != Z_OK) _exit(4);
    if (kind_ != Kind::tls) return kind_ != Kind::plain;
    tls_ = SSL_new(tls);
    SSL_set_fd(tls_, fd);
    if (SSL_accept(tls_) != 1) _exit(4);  // the descriptor blocks
    return true;
  }
  // Appends what was sent to `in`; `room` is scratch space. 0 at the end, below 0 when there is nothing.
  ssize_t receive(int fd, std::string& room, std::string& in) {
    if (kind_ == Kind::tls) return receive_tls(room, in);
    const ssize_t got = recv(fd, room.data(), room.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    if (kind_ == Kind::plain) in.append(room.data(), size_t(got));
    if (kind_ == Kind::deflate) inflate_all(room.data(), size_t(got), in);
    if (kind_ == Kind::snappy) raw_.append(room.data(), size_t(got)), take_chunks(in);
    return got;
  }
  // What stands in `out` as it goes on the wire.
  void encode(std::string& out) {
    if (kind_ == Kind::deflate) {
      const char head[5] = {0, char(out.size()), char(out.size() >> 8), char(~out.size()), char(~out.size() >> 8)};
      out.insert(0, head, 5).append("\0\0\0\xff\xff", 5);
    }
    if (kind_ != Kind::snappy) return;
    char head[8] = {1};
    put_little(head + 1, uint32_t(out.size() + 4), 3);
    put_little(head + 4, masked(out), 4);
    out.insert(0, head, 8);
    if (!std::exchange(greeted_, true)) out.insert(0, kGreeting, 10);
  }
  ssize_t send(int fd, const char* data, size_t bytes) {
    if (kind_ == Kind::tls) return SSL_write(tls_, data, int(bytes));
    return ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  enum class Kind { plain, tls, snappy, deflate };
  static constexpr const char* kGreeting = "\xff\x06\x00\x00sNaPpY";

  static void put_little(char* at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) at[i] = char(value >> (8 * i));
  }
  static uint32_t masked(std::string& bytes) {
    const uint32_t sum = ~crc32_iscsi(reinterpret_cast<unsigned char*>(bytes.data()), int(bytes.size()), ~0u);
    return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
  }
  ssize_t receive_tls(std::string& room, std::string& in) {
    ssize_t all = 0;
    do {
      const int got = SSL_read(tls_, room.data(), int(room.size()));
      if (got <= 0) return all > 0 ? all : SSL_get_error(tls_, got) == SSL_ERROR_WANT_READ ? -1 : 0;
      in.append(room.data(), size_t(got));
      all += got;
    } while (SSL_has_pending(tls_));
    return all;
  }
  void inflate_all(char* data, size_t bytes, std::string& in) {
    decoded_.resize(1 << 16);
    inflater_.next_in = reinterpret_cast<Bytef*>(data);
    inflater_.avail_in = uInt(bytes);
    do {
      inflater_.next_out = reinterpret_cast<Bytef*>(decoded_.data());
      inflater_.avail_out = uInt(decoded_.size());
      const int result = inflate(&inflater_, Z_SYNC_FLUSH);
      if (result != Z_OK && result != Z_BUF_ERROR) _exit(4);
      in.append(decoded_.data(), decoded_.size() - inflater_.avail_out);
    } while (inflater_.avail_out == 0);
  }
  void take_chunks(std::string& in) {
    size_t at = 0;
    while (raw_.size() - at >= 4) {
      const auto byte = [&](size_t i) { return size_t(uint8_t(raw_[at + i])); };
      const size_t bytes = byte(1) | byte(2) << 8 | byte(3) << 16;
      if (raw_.size() - at < 4 + bytes) break;
      if (byte(0) <= 1 && bytes > 4) take_chunk(byte(0) == 0, std::string_view(raw_).substr(at + 8, bytes - 4), at + 4, in);
      at += 4 + bytes;
    }
    raw_.erase(0, at);
  }
  void take_chunk(bool compressed, std::string_view data, size_t sum_at, std::string& in) {
    if (compressed && !snappy::Uncompress(data.data(), data.size(), &decoded_)) _exit(4);
    if (!compressed) decoded_.assign(data);
    char sum[4];
    put_little(sum, masked(decoded_), 4);
    if (raw_.compare(sum_at, 4, sum, 4) != 0) _exit(4);
    in += decoded_;
  }

  Kind kind_ = Kind::plain, next_ = Kind::plain;
  SSL* tls_ = nullptr;
  z_stream inflater_{};
  bool greeted_ = false;
  std::string raw_, decoded_;  // received Snappy; scratch space
};
