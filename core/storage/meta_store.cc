#include "core/storage/meta_store.h"

#include <algorithm>

#include "core/storage/format_files.h"

namespace rq::storage {

MetaStore::MetaStore(io::Host& host, ScriptRetries& retries, std::string path, std::uint64_t node_id, std::uint64_t next_sequence,
                     std::uint64_t revision)
    : host_(host),
      retries_(retries),
      path_(std::move(path)),
      node_id_(node_id),
      first_(next_sequence),
      next_(next_sequence),
      reserved_(next_sequence),
      reserve_wanted_(next_sequence),
      revision_stored_(revision),
      revision_wanted_(revision) {}

MetaStore::Ids MetaStore::take(std::uint64_t count, MessageId& first) {
  const std::uint64_t need = next_ + count;
  if (need > kSequenceEnd) return Ids::exhausted;
  if (need > reserve_wanted_) reserve_wanted_ = std::min(next_ + std::max(kSequenceBlock, count), kSequenceEnd);
  if (need > reserved_) {
    if (!io::planted(host_, "reuse_id_after_crash")) return Ids::wait;
    reserved_ = reserve_wanted_;  // on purpose: settle() goes on storing the first end
  }
  first = node_id_ << 48 | next_;
  next_ = need;
  return Ids::ok;
}

void MetaStore::settle() {
  finished_.reset();
  if (script_ || fault_) return;
  if (reserve_wanted_ <= reserved_ && revision_wanted_ == revision_stored_) return;
  reserve_writing_ = std::max(reserve_wanted_, reserved_);
  revision_writing_ = revision_wanted_;
  script_ = std::make_unique<Script>(host_, this, &MetaStore::on_done, &retries_);
  BrokerMeta meta;
  meta.node_id = node_id_;
  meta.next_sequence = io::planted(host_, "reuse_id_after_crash") ? first_ : reserve_writing_;
  meta.registry_revision = revision_writing_;
  script_->replace_file(path_, encode_broker_meta(meta));
  script_->start();
}

void MetaStore::on_done(void* self, Script& script) {
  MetaStore& store = *static_cast<MetaStore*>(self);
  if (script.failed()) {
    store.fault_ = script.fault();
  } else {
    store.reserved_ = store.reserve_writing_;
    store.revision_stored_ = store.revision_writing_;
    store.moved_ = true;
  }
  store.finished_ = std::move(store.script_);
}

bool MetaStore::moved() { return std::exchange(moved_, false); }

}  // namespace rq::storage
