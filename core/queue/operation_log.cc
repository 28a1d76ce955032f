#include "core/queue/operation_log.h"

#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_writer.h"

namespace rq::queue {
namespace {

std::string_view action_text(ManagedAction action) {
  switch (action) {
    case ManagedAction::create:
      return "create";
    case ManagedAction::configure:
      return "configure";
    case ManagedAction::pause:
      return "pause";
    case ManagedAction::unpause:
      return "unpause";
    case ManagedAction::empty:
      return "empty";
    case ManagedAction::remove:
      return "delete";
    case ManagedAction::tombstone:
      return "tombstone";
  }
  return "";
}

void put_policy(JsonWriter& json, const DeliveryPolicy& policy) {
  json.begin_object().key("delivery_mode").value(policy.ttl_discard ? "TTL_DISCARD" : "RELIABLE").key("message_ttl_seconds");
  if (policy.ttl_discard) {
    json.value(policy.ttl_seconds);
  } else {
    json.null();
  }
  json.end_object();
}

}  // namespace

Fingerprint::Fingerprint(const ManagedRequest& request) {
  JsonWriter json(text_);
  json.begin_array().value(request.on_channel ? "channel" : "topic").value(request.topic);
  if (request.on_channel) {
    json.value(request.channel).value(action_text(request.action)).value(request.require_idle).end_array();
    return;
  }
  json.value(action_text(request.action));
  const bool carries = request.action == ManagedAction::create || request.action == ManagedAction::configure;
  const DeliveryPolicy policy = request.policy.value_or(DeliveryPolicy{});
  if (request.action != ManagedAction::configure && policy == DeliveryPolicy{}) {
    older_ = text_ + "]";
  }
  if (carries) {
    put_policy(json, policy);
  } else {
    json.null();
  }
  json.end_array();
}

OperationLog::OperationLog(storage::ManagementOperations stored) : content_(std::move(stored)) {
  std::vector<std::string> order;
  std::set<std::string> listed;
  for (std::string& id : content_.completed_order) {
    const auto record = content_.records.find(id);
    if (record != content_.records.end() && record->second.completed && listed.insert(id).second) order.push_back(std::move(id));
  }
  for (const auto& [id, record] : content_.records) {
    if (!record.completed) {
      pending_[record.topic].insert(id);
    } else if (!listed.contains(id)) {
      order.push_back(id);  // so that it is forgotten some day
    }
  }
  content_.completed_order = std::move(order);
}

OperationLog::Found OperationLog::find(const std::string& id, const Fingerprint& fingerprint, std::string_view topic) const {
  const auto record = content_.records.find(id);
  if (record != content_.records.end()) {
    if (record->second.topic != topic || !fingerprint.matches(record->second.fingerprint)) return {Known::conflict, {}, {}};
    if (!record->second.completed) return {Known::pending, id, {}};
    if (!record->second.result) return {Known::damaged, {}, {}};
    return {Known::completed, id, *record->second.result};
  }
  const auto others = pending_.find(topic);
  if (others == pending_.end()) return {};
  for (const std::string& other : others->second)
    if (fingerprint.matches(content_.records.at(other).fingerprint)) return {Known::pending, other, {}};
  return {};
}

void OperationLog::begin(const std::string& id, const Fingerprint& fingerprint, const std::string& topic) {
  storage::ManagementOperation record;
  record.fingerprint = fingerprint.text();
  record.topic = topic;
  const bool added = content_.records.emplace(id, std::move(record)).second;
  RQ_CHECK(added);
  pending_[topic].insert(id);
}

void OperationLog::drop_pending(const std::string& topic, const std::string& id) {
  const auto found = pending_.find(topic);
  RQ_CHECK(found != pending_.end() && found->second.erase(id) == 1);
  if (found->second.empty()) pending_.erase(found);
}

void OperationLog::forget(const std::string& id) {
  const auto record = content_.records.find(id);
  RQ_CHECK(record != content_.records.end() && !record->second.completed);
  drop_pending(record->second.topic, id);
  content_.records.erase(record);
}

void OperationLog::complete(const std::string& id, const Fingerprint& fingerprint, const storage::ManagementResult& result) {
  const std::string topic = content_.records.at(id).topic;
  const std::set<std::string> ids = pending_.at(topic);
  RQ_CHECK(ids.contains(id));
  for (const std::string& other : ids) {
    storage::ManagementOperation& record = content_.records.at(other);
    if (other != id && !fingerprint.matches(record.fingerprint)) continue;
    record.completed = true;
    record.result = result;
    content_.completed_order.push_back(other);
    drop_pending(topic, other);
  }
  std::vector<std::string>& order = content_.completed_order;
  if (order.size() <= kCompletedMax) return;
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(order.size() - kCompletedMax);
  for (auto at = order.begin(); at != last; ++at) content_.records.erase(*at);
  order.erase(order.begin(), last);
}

}  // namespace rq::queue
