#include "core/http/response.h"

#include "core/base/json_writer.h"

namespace rq::http {
namespace {

void put_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

Response text_response(std::string_view body) {
  Response response;
  response.content_type = kTextPlain;
  response.body = body;
  return response;
}

Response json_response(std::string body) {
  Response response;
  response.content_type = kJson;
  response.body = std::move(body);
  return response;
}

Response empty_response() { return {}; }

Response error_response(int status, std::string_view code, std::string_view detail) {
  Response response;
  response.status = status;
  response.content_type = kJson;
  JsonWriter json(response.body);
  json.begin_object().key("message").value(code);
  if (!detail.empty()) json.key("detail").value(detail);
  json.end_object();
  if (status == 429) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response refusal_response(int status) {
  Response response;
  response.status = status;
  response.nsq_header = false;
  response.close = true;
  if (status == 417) return response;
  response.dated = false;
  response.content_type = kTextPlain;
  response.body =
      status == 501 ? "Unsupported transfer encoding" : std::to_string(status) + " " + std::string(reason_phrase(status));
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 301:
      return "Moved Permanently";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
  }
  return "Unknown";
}

void write_response(std::string& out, const Response& response, const ResponseFraming& framing) {
  const std::string status = std::to_string(response.status);
  out += framing.version >= 11 ? "HTTP/1.1 " : "HTTP/1.0 ";
  out += status;
  out += ' ';
  out += reason_phrase(response.status);
  out += "\r\n";
  if (!response.content_type.empty()) put_header(out, "Content-Type", response.content_type);
  if (response.nsq_header) put_header(out, "X-NSQ-Content-Type", "nsq; version=1.0");
  for (const auto& [name, value] : response.headers) put_header(out, name, value);
  if (response.dated && !framing.date.empty()) put_header(out, "Date", framing.date);
  put_header(out, "Content-Length", std::to_string(response.body.size() + response.rest_bytes));
  const bool closes = response.close || !framing.keep_alive;
  if (closes != (framing.version < 11)) put_header(out, "Connection", closes ? "close" : "keep-alive");
  out += "\r\n";
  if (!framing.head) out += response.body;
}

}  // namespace rq::http
