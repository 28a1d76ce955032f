#include "sim/http_text.h"

#include <cstdlib>

namespace rq::sim {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

// The decoded body once its last chunk is there.
std::optional<std::string> join_chunks(std::string_view rest) {
  std::string out;
  for (;;) {
    const std::size_t line_end = rest.find("\r\n");
    if (line_end == std::string_view::npos) return std::nullopt;
    const std::size_t size = std::strtoul(std::string(rest.substr(0, line_end)).c_str(), nullptr, 16);
    rest.remove_prefix(line_end + 2);
    if (rest.size() < size + 2) return std::nullopt;
    if (size == 0) return out;
    out.append(rest.substr(0, size));
    rest.remove_prefix(size + 2);
  }
}

}  // namespace

std::string HttpReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return "";
}

std::optional<HttpReply> parse_reply(std::string_view raw, bool closed, bool head) {
  const std::size_t head_end = raw.find("\r\n\r\n");
  if (head_end == std::string_view::npos) return std::nullopt;
  std::string_view lines = raw.substr(0, head_end + 2);
  std::string_view rest = raw.substr(head_end + 4);
  HttpReply reply;
  const std::size_t first = lines.find("\r\n");
  const std::string_view status_line = lines.substr(0, first);
  const std::size_t space = status_line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  reply.status = std::atoi(std::string(status_line.substr(space + 1)).c_str());
  lines.remove_prefix(first + 2);
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      reply.headers.emplace_back(lower(line.substr(0, colon)), std::string(value));
    }
    lines.remove_prefix(end + 2);
  }
  if (head || reply.status == 204 || reply.status == 304) return reply;
  if (reply.header("transfer-encoding") == "chunked") {
    std::optional<std::string> body = join_chunks(rest);
    if (!body) return std::nullopt;
    reply.body = std::move(*body);
    return reply;
  }
  const std::string length = reply.header("content-length");
  if (length.empty()) {
    if (!closed) return std::nullopt;
    reply.body = rest;
    return reply;
  }
  const std::size_t size = std::strtoull(length.c_str(), nullptr, 10);
  if (rest.size() < size) return std::nullopt;
  reply.body = rest.substr(0, size);
  return reply;
}

std::string http_request(std::string_view method, std::string_view target, std::string_view body,
                         const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string out(method);
  out.append(" ").append(target).append(" HTTP/1.1\r\n");
  bool host = false, length = false, connection = false;
  for (const auto& [name, value] : headers) {
    const std::string key = lower(name);
    host = host || key == "host";
    length = length || key == "content-length" || key == "transfer-encoding";
    connection = connection || key == "connection";
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!host) out.append("Host: broker\r\n");
  if (!connection) out.append("Connection: close\r\n");
  if (!length && (!body.empty() || method == "POST" || method == "PUT"))
    out.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  return out.append("\r\n").append(body);
}

}  // namespace rq::sim
