// Managed operations by their ids (page 20 section 7.4, page 30 section 13): what is pending, what was completed with which
// result, and which of them a request repeats. Pure data; the caller writes encode() and waits for it.
//
//  I1 At most kCompletedMax completed records, the oldest forgotten first.
//  I2 A stored fingerprint keeps its text; the form of three elements and the one of four match each other.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/queue/engine.h"
#include "core/storage/management_files.h"

namespace rq::queue {

class Fingerprint {
 public:
  // `request` is a valid one; a missing policy of a Topic's create means RELIABLE.
  explicit Fingerprint(const ManagedRequest& request);
  const std::string& text() const { return text_; }
  bool matches(std::string_view stored) const { return stored == text_ || (!older_.empty() && stored == older_); }

 private:
  std::string text_;
  std::string older_;  // without the policy, as releases before 0.9 wrote it; empty when they had no such operation
};

class OperationLog {
 public:
  static constexpr std::size_t kCompletedMax = 8'192;

  OperationLog() = default;
  explicit OperationLog(storage::ManagementOperations stored);

  enum class Known : std::uint8_t {
    unknown,
    completed,  // `result` is the answer
    pending,    // `id` is the record to adopt
    conflict,
    damaged,  // completed without a result: an integrity error
  };
  struct Found {
    Known known = Known::unknown;
    std::string id;
    storage::ManagementResult result;
  };
  Found find(const std::string& id, const Fingerprint& fingerprint, std::string_view topic) const;
  bool pending_on(std::string_view topic) const { return pending_.contains(topic); }
  const std::map<std::string, std::set<std::string>, std::less<>>& pending() const { return pending_; }  // Topic -> ids

  void begin(const std::string& id, const Fingerprint& fingerprint, const std::string& topic);
  void forget(const std::string& id);  // a pending one
  // With it every pending record of the same Topic and fingerprint.
  void complete(const std::string& id, const Fingerprint& fingerprint, const storage::ManagementResult& result);

  std::string encode() const { return storage::encode_operations(content_); }
  const storage::ManagementOperations& content() const { return content_; }

 private:
  void drop_pending(const std::string& topic, const std::string& id);

  storage::ManagementOperations content_;
  std::map<std::string, std::set<std::string>, std::less<>> pending_;
};

}  // namespace rq::queue
