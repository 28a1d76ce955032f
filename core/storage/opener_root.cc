// The part of the opener above the Topics: root directory, lock, FORMAT, COMPATIBILITY, broker.meta, management files, outbox.
#include "core/base/probe.h"
#include "core/storage/management_files.h"
#include "core/storage/opener_impl.h"
#include "core/storage/outbox.h"

namespace rq::storage {

std::vector<std::string> Opener::Impl::with_parents(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    out.push_back(path.substr(0, slash));
  out.push_back(path);
  return out;
}

// The directory that holds the next name of work_, from the data directory upwards.
void Opener::Impl::sync_parent() {
  if (work_at_ == 0) return enter(Phase::removals);
  host_.disk.sync_dir(op_, parent_of(work_[--work_at_]));
}

void Opener::Impl::make_root() {
  if (options_.read_only) return host_.disk.stat(op_, paths_.root(), true, stat_);
  if (work_.empty()) work_ = {paths_.root()};
  host_.disk.make_dir(op_, work_[work_at_]);
}

void Opener::Impl::take_root() {
  const io::Error error = op_.error;
  if (options_.read_only) {
    if (error) return refuse(paths_.root(), std::nullopt, describe(error));
    if (stat_.kind != io::FileKind::directory) return refuse(paths_.root(), std::nullopt, "not a directory");
    return enter(Phase::lock);
  }
  if (error.code == io::Errc::not_found && !parents_) {
    parents_ = true;
    work_ = with_parents(paths_.root());
    work_at_ = 0;
    return make_root();
  }
  if (error) return refuse(work_[work_at_], std::nullopt, describe(error));
  if (++work_at_ < work_.size()) return make_root();
  enter(Phase::lock);
}

void Opener::Impl::take_lock() {
  in_use_ = op_.error.code == io::Errc::locked;
  if (in_use_) return refuse(paths_.lock(), std::nullopt, "another process holds the lock of this data directory");
  // A copy may be without the file. It is not made here, and no Broker serves a directory without it.
  if (options_.read_only && op_.error.code == io::Errc::not_found) return enter(Phase::format);
  if (op_.error) return refuse(paths_.lock(), std::nullopt, describe(op_.error));
  lock_ = op_.file();
  enter(options_.read_only ? Phase::format : Phase::lock_read);
}

void Opener::Impl::read_file(std::string path, std::uint64_t bytes_max) {
  file_.begin(std::move(path), bytes_max);
  RQ_CHECK(!file_.poll(call()));
}

void Opener::Impl::take_format() {
  if (!file_.poll(call())) return;
  switch (file_.result()) {
    case FileRead::Result::missing:
      fresh_ = true;
      return enter(Phase::older_formats);
    case FileRead::Result::too_large:
      return refuse(paths_.format(), std::nullopt, "longer than 65536 bytes");
    case FileRead::Result::failed:
      return refuse(paths_.format(), std::nullopt, describe(file_.error()));
    case FileRead::Result::ok:
      break;
  }
  if (const auto defect = check_format(bytes_of(file_.content()))) return refuse(paths_.format(), std::nullopt, *defect);
  enter(Phase::compatibility);
}

void Opener::Impl::take_older_format() {
  if (!op_.error)
    return refuse(paths_.in_root(work_[work_at_]), std::nullopt,
                  "exists without FORMAT: this directory has an older format or has lost its FORMAT");
  if (op_.error.code != io::Errc::not_found) return refuse(paths_.in_root(work_[work_at_]), std::nullopt, describe(op_.error));
  if (++work_at_ == work_.size()) return enter(Phase::compatibility);
  host_.disk.stat(op_, paths_.in_root(work_[work_at_]), true, stat_);
}

void Opener::Impl::take_compatibility() {
  if (!file_.poll(call())) return;
  const std::string path = paths_.compatibility();
  switch (file_.result()) {
    case FileRead::Result::missing:
      break;
    case FileRead::Result::too_large:
      return refuse(path, std::nullopt, "longer than 65536 bytes");
    case FileRead::Result::failed:
      return refuse(path, std::nullopt, describe(file_.error()));
    case FileRead::Result::ok: {
      const Decoded<Compatibility> stored = decode_compatibility(bytes_of(file_.content()));
      if (!stored) return refuse(path, std::nullopt, stored.error());
      compatibility_ = *stored;
    }
  }
  if (const auto fence = check_reader_level(compatibility_)) return refuse(path, std::nullopt, *fence);
  if (!options_.read_only) {
    const Decoded<Compatibility> raised = raise_level(compatibility_, options_.feature_level);
    if (!raised) return refuse(path, std::nullopt, raised.error());
    compatibility_ = *raised;
  }
  enter(Phase::broker_meta);
}

void Opener::Impl::take_broker_meta() {
  if (!file_.poll(call())) return;
  const std::string path = paths_.broker_meta();
  meta_.node_id = options_.node_id;
  if (file_.result() == FileRead::Result::missing) {
    meta_missing_ = true;
    meta_.next_sequence = 1;
    meta_.registry_revision = 1;
    return enter(Phase::fences);
  }
  if (file_.result() == FileRead::Result::too_large) {
    add_fault({path, std::nullopt, "above 64 MiB"});
  } else if (file_.result() == FileRead::Result::failed) {
    add_fault({path, std::nullopt, describe(file_.error())});
  } else if (const Decoded<BrokerMeta> meta = decode_broker_meta(bytes_of(file_.content())); !meta) {
    add_fault({path, std::nullopt, meta.error()});
  } else if (meta->node_id != options_.node_id && !options_.read_only) {
    add_fault({path, std::nullopt,
               "belongs to node " + std::to_string(meta->node_id) + ", configured is node " + std::to_string(options_.node_id)});
  } else {
    meta_ = *meta;
  }
  go_on(Phase::fences);
}

void Opener::Impl::take_management(bool fences) {
  if (!file_.poll(call())) return;
  const std::string path = fences ? paths_.fences() : paths_.operations();
  std::optional<std::string> defect;
  if (file_.result() == FileRead::Result::too_large) defect = "above 64 MiB";
  if (file_.result() == FileRead::Result::failed) defect = describe(file_.error());
  if (file_.result() == FileRead::Result::ok) {
    const ConstBuf content = bytes_of(file_.content());
    if (fences) {
      auto decoded = decode_fences(content);
      if (decoded) {
        fences_ = std::move(*decoded);
      } else {
        defect = decoded.error();
      }
    } else {
      auto decoded = decode_operations(content);
      if (decoded) {
        operations_ = std::move(*decoded);
      } else {
        defect = decoded.error();
      }
    }
  }
  if (defect) add_fault({path, std::nullopt, *defect});
  go_on(fences ? Phase::operations : Phase::list_outbox);
}

void Opener::Impl::take_outbox_list() {
  if (op_.error && op_.error.code != io::Errc::not_found) {
    add_fault({paths_.outbox(), std::nullopt, describe(op_.error)});
    return go_on(Phase::list_audit);
  }
  work_.clear();
  work_at_ = 0;
  for (const io::DirEntry& entry : entries_) {
    if (entry.name.ends_with(".outbox")) work_.push_back(entry.name);
    if (entry.name.ends_with(".tmp") && entry.kind != io::FileKind::directory)
      temporaries_.push_back(paths_.outbox() + "/" + entry.name);
  }
  outbox_ = work_;
  enter(Phase::outbox);
}

void Opener::Impl::next_outbox() {
  if (work_at_ == work_.size()) return enter(Phase::list_audit);
  read_file(paths_.outbox() + "/" + work_[work_at_], kOutboxBytesMax);
}

void Opener::Impl::take_outbox() {
  if (!file_.poll(call())) return;
  const std::string& name = work_[work_at_++];
  std::optional<std::string> defect;
  if (file_.result() == FileRead::Result::too_large) {
    defect = "impossible length";
  } else if (file_.result() != FileRead::Result::ok) {
    defect = describe(file_.error());
  } else if (const auto entry = decode_outbox(bytes_of(file_.content())); !entry) {
    defect = entry.error();
  } else if (!outbox_name_fits(name, *entry)) {
    defect = "name does not fit its content";
  }
  if (defect) add_fault({paths_.outbox() + "/" + name, std::nullopt, *defect});
  go_on(Phase::outbox);
}

void Opener::Impl::write_root_files() {
  script_ = std::make_unique<Script>(host_, this, &Impl::on_script);
  Script& script = *script_;
  const auto replace = [&](const std::string& path, std::string content) {
    script.write_new(paths_.format_temporary(), std::move(content));
    script.rename(paths_.format_temporary(), path);
    script.sync_dir(paths_.root());
  };
  if (fresh_) replace(paths_.format(), encode_format());
  replace(paths_.compatibility(), encode_compatibility(compatibility_));
  script.make_dir(paths_.topics());
  script.make_dir(paths_.outbox());
  script.make_dir(paths_.audit());
  for (const std::string& path : {paths_.broker_meta(), paths_.fences(), paths_.operations()}) script.unlink(temporary_of(path));
  script.sync_dir(paths_.root());
  RQ_SOMETIMES(!temporaries_.empty(), "opener: temporaries of a crash are removed");
  for (const std::string& path : temporaries_) script.unlink(path);
  if (!temporaries_.empty()) {
    script.sync_dir(paths_.outbox());
    script.sync_dir(paths_.audit());
  }
  run_script();
}

}  // namespace rq::storage
