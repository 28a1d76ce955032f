#include <cerrno>

#include "core/storage/opener_impl.h"

namespace rq::storage {

Opener::Opener(io::Host& host, OpenOptions options) : impl_(std::make_unique<Impl>(host, std::move(options))) {}
Opener::~Opener() = default;

void Opener::start() { impl_->start(); }
bool Opener::done() const { return impl_->done_; }
Result<BrokerImage>& Opener::result() { return impl_->result_; }
const std::vector<Fault>& Opener::faults() const { return impl_->faults_; }
const BrokerImage& Opener::image() const { return impl_->result_ ? *impl_->result_ : impl_->partial_; }
const std::vector<std::string>& Opener::repairs() const { return impl_->repairs_; }
io::FileId Opener::lock_file() const { return impl_->lock_; }
bool Opener::in_use() const { return impl_->in_use_; }
bool Opener::was_clean() const { return impl_->clean_; }
std::uint64_t Opener::topics_done() const { return impl_->topics_done_; }
std::uint64_t Opener::topics_total() const { return impl_->topics_total_; }

Opener::Impl::Impl(io::Host& host, OpenOptions options) : host_(host), options_(std::move(options)), paths_(options_.data_path) {
  io::bind<&Impl::on_op>(op_, this);
}

void Opener::Impl::start() { enter(Phase::make_root); }

void Opener::Impl::on_op(io::Op&) { resume(phase_); }

void Opener::Impl::enter(Phase phase) {
  phase_ = phase;
  switch (phase) {
    case Phase::make_root:
      return make_root();
    case Phase::lock:
      if (options_.locked) return enter(Phase::format);
      return host_.disk.lock(op_, paths_.lock(), options_.read_only ? io::LockKind::shared : io::LockKind::exclusive);
    case Phase::lock_read:
      text_.assign(64, '\0');
      return host_.disk.read(op_, lock_, 0, std::as_writable_bytes(std::span(text_.data(), text_.size())));
    case Phase::lock_release:
      return host_.disk.reserve(op_, lock_, 0);  // blocks held for a full volume (D-42b)
    case Phase::lock_cut:
      return host_.disk.truncate(op_, lock_, 0);
    case Phase::lock_write:
      text_ = lock_content(options_.pid, false);
      return host_.disk.rewrite(op_, lock_, 0, bytes_of(text_));
    case Phase::lock_sync: {
      const io::BarrierFile file{lock_, io::Durability::full};
      return host_.disk.barrier(op_, {&file, 1});
    }
    case Phase::format:
      return read_file(paths_.format(), kFormatBytesMax);
    case Phase::older_formats:
      work_ = {"rustqueue-format.json", "broker.meta", "catalog.json", "topics", "consensus"};
      work_at_ = 0;
      return host_.disk.stat(op_, paths_.in_root(work_[0]), true, stat_);
    case Phase::compatibility:
      return read_file(paths_.compatibility(), kFormatBytesMax);
    case Phase::broker_meta:
      return read_file(paths_.broker_meta(), kJsonBytesMax);
    case Phase::fences:
      return read_file(paths_.fences(), kJsonBytesMax);
    case Phase::operations:
      return read_file(paths_.operations(), kJsonBytesMax);
    case Phase::list_outbox:
      entries_.clear();
      return host_.disk.list(op_, paths_.outbox(), entries_);
    case Phase::outbox:
      return next_outbox();
    case Phase::list_audit:
      entries_.clear();
      return host_.disk.list(op_, paths_.audit(), entries_);
    case Phase::list_topics:
      entries_.clear();
      return host_.disk.list(op_, paths_.topics(), entries_);
    case Phase::topics:
      make_lanes(8);
      return pump();
    case Phase::root_files:
      return write_root_files();
    case Phase::parent:
      // A kill on the first start may have left the name of the data directory without a sync, and of those above it.
      if (!fresh_ && clean_) return enter(Phase::removals);
      work_ = with_parents(paths_.root());
      work_at_ = work_.size();
      return sync_parent();
    case Phase::removals:
      removal_plan_ = 0;
      return next_removal();
    case Phase::tails:
      make_tails();
      make_lanes(std::min<std::size_t>(8, 1 + tails_.size() / 64));
      return pump();
    case Phase::topic_repairs:
      make_lanes(8);
      return pump();
    case Phase::finish:
      return finish_directory();
    case Phase::unlock:
      return host_.disk.close(op_, std::exchange(lock_, io::FileId::none));
    case Phase::done:
      return end();
  }
}

void Opener::Impl::resume(Phase phase) {
  const io::Error error = op_.error;
  switch (phase) {
    case Phase::make_root:
      return take_root();
    case Phase::lock:
      return take_lock();
    case Phase::lock_read:
      if (error && error.code != io::Errc::eof) return refuse(paths_.lock(), std::nullopt, describe(error));
      text_.resize(error ? 0 : op_.value);
      clean_ = is_clean_lock(text_);
      return enter(Phase::lock_release);
    case Phase::lock_release:
      return enter(Phase::lock_cut);  // a back end that cannot reserve has nothing to give back
    case Phase::lock_cut:
    case Phase::lock_write:
    case Phase::lock_sync:
      if (error) return refuse(paths_.lock(), std::nullopt, describe(error));
      return enter(static_cast<Phase>(static_cast<int>(phase) + 1));
    case Phase::format:
      return take_format();
    case Phase::older_formats:
      return take_older_format();
    case Phase::compatibility:
      return take_compatibility();
    case Phase::broker_meta:
      return take_broker_meta();
    case Phase::fences:
      return take_management(true);
    case Phase::operations:
      return take_management(false);
    case Phase::list_outbox:
      return take_outbox_list();
    case Phase::outbox:
      return take_outbox();
    case Phase::list_audit:
      for (const io::DirEntry& entry : entries_)
        if (entry.name.ends_with(".tmp") && entry.kind != io::FileKind::directory)
          temporaries_.push_back(paths_.audit() + "/" + entry.name);
      return enter(Phase::list_topics);
    case Phase::list_topics:
      return take_topic_list();
    case Phase::parent:
      // A directory above may be closed to us, or of a kind that cannot be synced. After anything else, nothing below is certain.
      if (error && error.code != io::Errc::denied && error.os != EINVAL)
        return refuse(parent_of(work_[work_at_]), std::nullopt, describe(error));
      return sync_parent();
    case Phase::removals:
      return next_removal();
    case Phase::unlock:
      return enter(Phase::done);
    default:
      RQ_CHECK(false);
  }
}

void Opener::Impl::add_fault(Fault fault) {
  fault.file = paths_.relative(fault.file);
  faults_.push_back(std::move(fault));
}

void Opener::Impl::refuse(Fault fault) {
  add_fault(std::move(fault));
  enter(lock_ != io::FileId::none ? Phase::unlock : Phase::done);
}

void Opener::Impl::refuse(std::string path, std::optional<std::uint64_t> offset, std::string what) {
  refuse(Fault{std::move(path), offset, std::move(what)});
}

void Opener::Impl::go_on(Phase phase) {
  if ((faults_.empty() || options_.read_only) && phase != Phase::done) return enter(phase);
  enter(lock_ != io::FileId::none ? Phase::unlock : Phase::done);
}

void Opener::Impl::end() {
  if (faults_.empty()) {
    make_image(*result_);
  } else {
    if (options_.read_only) make_image(partial_);
    result_ = tl::unexpected(faults_.front());
  }
  done_ = true;
}

void Opener::Impl::run_script() { script_->start(); }

void Opener::Impl::on_script(void* self, Script& script) {
  Impl& impl = *static_cast<Impl*>(self);
  impl.finished_ = std::move(impl.script_);
  if (script.failed()) return impl.refuse(script.fault());
  impl.enter(impl.phase_ == Phase::root_files ? Phase::parent : Phase::done);
}

}  // namespace rq::storage
