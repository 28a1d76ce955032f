#include "core/broker/http_routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace rq::broker {
namespace {

struct Entry {
  std::string_view path;
  std::string_view method;
  Route route;
};

constexpr Entry kRoutes[] = {
    {"/ping", "GET", Route::ping},
    {"/info", "GET", Route::info},
    {"/pub", "POST", Route::pub},
    {"/mpub", "POST", Route::mpub},
    {"/stats", "GET", Route::stats},
    {"/lookup", "GET", Route::lookup},
    {"/topics", "GET", Route::topics},
    {"/channels", "GET", Route::channels},
    {"/nodes", "GET", Route::nodes},
    {"/topic/create", "POST", Route::topic_create},
    {"/topic/delete", "POST", Route::topic_delete},
    {"/topic/empty", "POST", Route::topic_empty},
    {"/topic/pause", "POST", Route::topic_pause},
    {"/topic/unpause", "POST", Route::topic_unpause},
    {"/channel/create", "POST", Route::channel_create},
    {"/channel/delete", "POST", Route::channel_delete},
    {"/channel/empty", "POST", Route::channel_empty},
    {"/channel/pause", "POST", Route::channel_pause},
    {"/channel/unpause", "POST", Route::channel_unpause},
    {"/v1/health", "GET", Route::health},
    {"/v1/stats", "GET", Route::native_stats},
    {"/v1/storage/scrub", "POST", Route::storage_scrub},
    {"/metrics", "GET", Route::metrics},
    {"/v1/registry", "GET", Route::registry},
    {"/v1/registry/head", "GET", Route::registry_head},
    {"/v1/capabilities", "GET", Route::capabilities},
    {"/v1/observe", "GET", Route::observe},
    {"/v1/observe/head", "GET", Route::observe_head},
    {"/v1/drain", "GET", Route::drain_get},
    {"/v1/drain", "POST", Route::drain_post},
    {"/v1/manage/fences/sync", "POST", Route::fences_sync},
};
constexpr std::string_view kConfigPrefix = "/config/";
constexpr std::string_view kTopicsPrefix = "/v1/manage/topics/";
constexpr std::string_view kFeedPrefix = "/v1/ws/topics/";
constexpr std::string_view kChannelsPrefix = "/v1/manage/channels/";

// Of that method when there is one, else any of the path.
const Entry* find_entry(std::string_view path, std::string_view method) {
  const Entry* other = nullptr;
  for (const Entry& entry : kRoutes) {
    if (entry.path != path) continue;
    if (entry.method == method) return &entry;
    other = &entry;
  }
  return other;
}

std::string_view allowed_methods(const Entry& entry) {
  if (entry.route == Route::drain_get || entry.route == Route::drain_post) return "GET, OPTIONS, POST";
  return entry.method == "GET" ? "GET, OPTIONS" : "OPTIONS, POST";
}

http::Response with_allow(http::Response response, std::string_view methods) {
  response.headers.emplace_back("Allow", std::string(methods));
  return response;
}

// 405, or the answer to OPTIONS. The list is sorted, as nsqd's is.
http::Response other_method(const http::Request& request, std::string_view allowed) {
  if (request.method == "OPTIONS") {
    http::Response response = with_allow(http::empty_response(), allowed);
    response.nsq_header = false;
    return response;
  }
  return with_allow(http::error_response(405, "METHOD_NOT_ALLOWED"), allowed);
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

// A header holds ASCII.
std::string ascii_only(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02x}", byte);
    }
  }
  return out;
}

// Lower case, no trailing slash, no empty, `.` or `..` segment.
std::string canonical(std::string_view path) {
  std::string out;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    at = end + 1;
    if (segment == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else if (!segment.empty() && segment != ".") {
      out.push_back('/');
      out += lower(segment);
    }
  }
  return out;
}

// False when a "/" of the path was written as an escape.
bool same_slashes(std::string_view target, std::string_view path) {
  const std::string_view raw = target.substr(0, target.find('?'));
  return std::count(raw.begin(), raw.end(), '/') == std::count(path.begin(), path.end(), '/');
}

// Another spelling of a known path leads there: 301 for GET, 307 otherwise (page 10 section 6.1).
std::optional<http::Response> redirect(const http::Request& request, const http::Target& target) {
  std::string path = canonical(target.path);
  const Entry* entry = find_entry(path, request.method);
  if (entry == nullptr || entry->method != request.method) return std::nullopt;
  http::Response response = http::empty_response();
  response.status = request.method == "GET" ? 301 : 307;
  response.nsq_header = false;
  if (!target.query.empty()) path += "?" + target.query;
  if (response.status == 301) {
    response.content_type = "text/html; charset=utf-8";
    response.body = "<a href=\"" + html_escaped(path) + "\">Moved Permanently</a>.\n\n";
  }
  response.headers.emplace_back("Location", ascii_only(path));
  return response;
}

}  // namespace

RouteResult find_route(const http::Request& request) {
  auto target = http::parse_target(request.target);
  if (!target) return {std::nullopt, http::error_response(400, "INVALID_REQUEST")};
  if (const Entry* entry = find_entry(target->path, request.method)) {
    if (request.method == entry->method) return {Routed{entry->route, std::move(*target), ""}, {}};
    return {std::nullopt, other_method(request, allowed_methods(*entry))};
  }
  const std::string_view path = target->path;
  // One segment, decoded; every method, since the handshake has the first word about it.
  if (path.starts_with(kFeedPrefix) && path.size() > kFeedPrefix.size() && request.method != "OPTIONS" &&
      (path.find('/', kFeedPrefix.size()) == std::string_view::npos || !same_slashes(request.target, path))) {
    std::string topic(path.substr(kFeedPrefix.size()));
    return {Routed{Route::live_feed, std::move(*target), std::move(topic)}, {}};
  }
  for (const bool on_channel : {false, true}) {
    const std::string_view prefix = on_channel ? kChannelsPrefix : kTopicsPrefix;
    if (!path.starts_with(prefix)) continue;
    if (request.method != "POST") return {std::nullopt, other_method(request, "OPTIONS, POST")};
    std::string action(path.substr(prefix.size()));
    return {Routed{on_channel ? Route::manage_channel : Route::manage_topic, std::move(*target), std::move(action)}, {}};
  }
  if (path.starts_with(kConfigPrefix) && path.size() > kConfigPrefix.size()) {
    std::string option(path.substr(kConfigPrefix.size()));
    if (option.find('/') != std::string::npos) return {std::nullopt, http::error_response(404, "NOT_FOUND")};
    if (request.method == "GET") return {Routed{Route::config_get, std::move(*target), std::move(option)}, {}};
    if (request.method == "PUT") return {Routed{Route::config_put, std::move(*target), std::move(option)}, {}};
    return {std::nullopt, other_method(request, "GET, OPTIONS, PUT")};
  }
  if (auto response = redirect(request, *target)) return {std::nullopt, std::move(*response)};
  return {std::nullopt, http::error_response(404, "NOT_FOUND")};
}

bool is_publish(Route route) { return route == Route::pub || route == Route::mpub; }
bool is_management(Route route) {
  return route == Route::manage_topic || route == Route::manage_channel || route == Route::fences_sync;
}
bool is_lookup(Route route) {
  return route == Route::lookup || route == Route::topics || route == Route::channels || route == Route::nodes;
}
bool is_json(Route route) { return is_management(route) || route == Route::drain_post; }
bool takes_body(Route route) { return is_publish(route) || is_json(route) || route == Route::config_put; }
bool serves_while_opening(Route route) { return route == Route::ping || route == Route::health; }

TokenClass token_class(Route route) {
  if (is_publish(route)) return TokenClass::publish;
  if (is_management(route)) return TokenClass::console;
  if (admin_action(route) || route == Route::drain_post || route == Route::storage_scrub || route == Route::config_put)
    return TokenClass::admin;
  switch (route) {
    case Route::observe:
    case Route::observe_head:
      return TokenClass::console;
    case Route::registry:
    case Route::registry_head:
    case Route::capabilities:
    case Route::drain_get:
      return TokenClass::registry_or_console;
    default:
      return TokenClass::none;
  }
}

std::optional<queue::Admin> admin_action(Route route) {
  switch (route) {
    case Route::topic_create:
      return queue::Admin::create_topic;
    case Route::topic_delete:
      return queue::Admin::delete_topic;
    case Route::topic_empty:
      return queue::Admin::empty_topic;
    case Route::topic_pause:
      return queue::Admin::pause_topic;
    case Route::topic_unpause:
      return queue::Admin::unpause_topic;
    case Route::channel_create:
      return queue::Admin::create_channel;
    case Route::channel_delete:
      return queue::Admin::delete_channel;
    case Route::channel_empty:
      return queue::Admin::empty_channel;
    case Route::channel_pause:
      return queue::Admin::pause_channel;
    case Route::channel_unpause:
      return queue::Admin::unpause_channel;
    default:
      return std::nullopt;
  }
}

}  // namespace rq::broker
