#include "core/storage/salvage.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/storage/management_files.h"
#include "core/storage/outbox.h"

namespace rq::storage {

Salvage::Salvage(io::Host& host, std::string data_path) : host_(host), paths_(data_path) { io::bind<&Salvage::on_op>(op_, this); }

void Salvage::start() { run(); }

void Salvage::run() {
  while (state_ != State::done && step()) {
  }
}

bool Salvage::give_up(std::string why) {
  report_ += "FAILED: " + why + "\n";
  state_ = State::done;
  return false;
}

bool Salvage::step() {
  switch (state_) {
    case State::start:
      state_ = State::root;
      host_.disk.stat(op_, paths_.root(), true, stat_);
      return false;
    case State::root:
      if (op_.error) return give_up(paths_.root() + ": " + describe(op_.error));
      if (stat_.kind != io::FileKind::directory) return give_up(paths_.root() + ": not a directory");
      state_ = State::list_root;
      host_.disk.list(op_, paths_.root(), entries_);
      return false;
    case State::list_root:
      return take_root_list();
    case State::lock:
      if (op_.error.code == io::Errc::locked) return give_up("another process holds the lock of this data directory");
      if (op_.error) return give_up(paths_.lock() + ": " + describe(op_.error));
      lock_ = op_.file();
      state_ = State::unmark;
      host_.disk.truncate(op_, lock_, 0);
      return false;
    case State::unmark:
      if (op_.error) return give_up(paths_.lock() + ": " + describe(op_.error));
      state_ = State::unmarked;
      sync_lock();
      return false;
    case State::unmarked:
      if (op_.error) return give_up(paths_.lock() + ": " + describe(op_.error));
      // broker.meta first: it says whether this is a directory of this format when FORMAT does not.
      files_ = {{RootFile::broker_meta, paths_.broker_meta()},
                {RootFile::format, paths_.format()},
                {RootFile::compatibility, paths_.compatibility()},
                {RootFile::fences, paths_.fences()},
                {RootFile::operations, paths_.operations()}};
      state_ = State::list_outbox;
      entries_.clear();
      host_.disk.list(op_, paths_.outbox(), entries_);
      return false;
    case State::list_outbox:
      note_taken(paths_.outbox());
      for (const io::DirEntry& entry : entries_)
        if (entry.name.ends_with(".outbox")) files_.emplace_back(RootFile::outbox, paths_.outbox() + "/" + entry.name);
      return read_next();
    case State::file:
      return file_.poll(call()) && take_file();
    case State::list_topics:
      for (const io::DirEntry& entry : entries_)
        if (entry.kind == io::FileKind::directory) topics_.push_back(paths_.topics() + "/" + entry.name);
      return next_topic();
    case State::topic:
      return topic_->poll(call()) && take_topic();
    case State::copy:
      if (!copy_.poll(call())) return false;
      if (copy_.fault()) return give_up("cannot save what is to be cut: " + copy_.fault()->message());
      if (copy_.unreadable_bytes() > 0)
        line(topic_->copies()[copy_at_].to,
             fmt::format("{} bytes cannot be read and stand there as zeros", copy_.unreadable_bytes()));
      if (++copy_at_ == topic_->copies().size()) return start_script();
      start_copy();
      return true;
    case State::script:
    case State::verify:
    case State::done:
      return false;
  }
  return false;
}

void Salvage::start_copy() {
  const TopicSalvage::Copy& copy = topic_->copies()[copy_at_];
  copy_.begin(copy.from, copy.at, copy.to);
}

void Salvage::note_taken(const std::string& dir) {
  for (const io::DirEntry& entry : entries_) taken_.insert(dir + "/" + entry.name);
}

// A path mistyped costs nothing, not even a lock file.
bool Salvage::take_root_list() {
  if (op_.error) return give_up(paths_.root() + ": " + describe(op_.error));
  const auto known = [](const io::DirEntry& entry) {
    return entry.name == "FORMAT" || entry.name == "broker.meta" || entry.name == "topics";
  };
  if (std::none_of(entries_.begin(), entries_.end(), known)) return give_up(paths_.root() + ": no data directory: left alone");
  note_taken(paths_.root());
  state_ = State::lock;
  host_.disk.lock(op_, paths_.lock(), io::LockKind::exclusive);
  return false;
}

void Salvage::sync_lock() {
  const io::BarrierFile file{lock_, io::Durability::full};
  host_.disk.barrier(op_, {&file, 1});
}

// --- root files and outbox

bool Salvage::read_next() {
  if (file_at_ == files_.size()) {
    state_ = State::list_topics;
    entries_.clear();
    host_.disk.list(op_, paths_.topics(), entries_);
    return false;
  }
  state_ = State::file;
  const auto& [kind, path] = files_[file_at_];
  const bool marker = kind == RootFile::format || kind == RootFile::compatibility;
  file_.begin(path, kind == RootFile::outbox ? kOutboxBytesMax : marker ? kFormatBytesMax : kJsonBytesMax);
  return true;
}

// What is wrong with the file that was read; empty when nothing is.
std::string Salvage::root_defect() {
  const auto& [kind, path] = files_[file_at_];
  if (file_.result() == FileRead::Result::too_large) return "too long";
  if (file_.result() != FileRead::Result::ok) return describe(file_.error());
  const ConstBuf content = bytes_of(file_.content());
  switch (kind) {
    case RootFile::broker_meta: {
      const auto meta = decode_broker_meta(content);
      meta_good_ = meta.has_value();
      return meta ? "" : meta.error();
    }
    case RootFile::format:
      return check_format(content).value_or("");
    case RootFile::compatibility: {
      const auto levels = decode_compatibility(content);
      return levels ? "" : levels.error();
    }
    case RootFile::fences: {
      const auto fences = decode_fences(content);
      return fences ? "" : fences.error();
    }
    case RootFile::operations: {
      const auto operations = decode_operations(content);
      return operations ? "" : operations.error();
    }
    case RootFile::outbox: {
      const auto entry = decode_outbox(content);
      if (!entry) return entry.error();
      return outbox_name_fits(path.substr(path.rfind('/') + 1), *entry) ? "" : "name does not fit its content";
    }
  }
  return "";
}

bool Salvage::take_file() {
  const auto& [kind, path] = files_[file_at_];
  const bool missing = file_.result() == FileRead::Result::missing;
  std::string defect;
  if (missing && kind == RootFile::format) defect = "missing";
  if (!missing) defect = root_defect();
  ++file_at_;
  if (defect.empty()) return read_next();
  if (kind == RootFile::format && !meta_good_)
    return give_up(paths_.relative(path) + ": " + defect + "; broker.meta does not say either that this is format 7: left alone");
  static constexpr const char* kLost[] = {
      "the next start makes it again; ids of messages that are no longer stored may be given out again",
      "written again, broker.meta says that this is format 7",
      "the next start makes it again; its feature level and its generation are lost",
      "fences are lost until the next synchronisation",
      "the results of managed operations are lost, and pending ones are forgotten",
      "this dead-letter move is lost; the message is still in its Channel and will be moved again",
  };
  ++repaired_;
  const std::string aside = salvage_name(path, taken_);
  line(path,
       defect + ": " + (missing ? "" : "set aside as " + paths_.relative(aside) + "; ") + kLost[static_cast<std::size_t>(kind)]);
  script_ = std::make_unique<Script>(host_, this, &Salvage::on_script);
  if (!missing) script_->rename(path, aside);
  script_->sync_dir(parent_of(path));
  if (kind == RootFile::format) {
    script_->write_new(paths_.format_temporary(), encode_format());
    script_->rename(paths_.format_temporary(), path);
    script_->sync_dir(paths_.root());
  }
  after_script_ = State::file;
  state_ = State::script;
  script_->start();
  return false;
}

// --- Topics

bool Salvage::next_topic() {
  if (topic_at_ == topics_.size()) return start_verify();
  topic_ = std::make_unique<TopicSalvage>(topics_[topic_at_]);
  state_ = State::topic;
  return true;
}

bool Salvage::take_topic() {
  const auto tell = [this](const std::string& each) {
    line(topics_[topic_at_] + "/" + each.substr(0, each.find(':')), each.substr(each.find(':') + 2));
  };
  if (topic_->clean() || ++looks_ > kLooksMax) {
    std::for_each(topic_->complaints().begin(), topic_->complaints().end(), tell);
    looks_ = 0;
    ++topic_at_;
    return next_topic();
  }
  std::for_each(topic_->lines().begin(), topic_->lines().end(), tell);
  repaired_ += topic_->lines().size();
  if (topic_->copies().empty()) return start_script();
  copy_at_ = 0;
  start_copy();
  state_ = State::copy;
  return true;
}

bool Salvage::start_script() {
  script_ = std::make_unique<Script>(host_, this, &Salvage::on_script);
  topic_->add_steps(*script_);
  after_script_ = State::topic;
  state_ = State::script;
  script_->start();
  return false;
}

void Salvage::on_script(void* self, Script& script) {
  Salvage& salvage = *static_cast<Salvage*>(self);
  salvage.finished_ = std::move(salvage.script_);
  if (script.failed()) {
    salvage.give_up(script.fault().message());
    return;
  }
  const bool go_on = salvage.after_script_ == State::file ? salvage.read_next() : salvage.next_topic();  // the same one again
  if (go_on) salvage.run();
}

// --- the end

bool Salvage::start_verify() {
  OpenOptions options;
  options.data_path = paths_.root();
  options.node_id = 0;
  options.read_only = true;
  options.locked = true;
  opener_ = std::make_unique<Opener>(host_, std::move(options));
  state_ = State::verify;
  opener_->start();
  return false;
}

void Salvage::settle() {
  if (state_ != State::verify || !opener_->done()) return;
  for (const Fault& fault : opener_->faults()) report_ += "cannot be repaired: " + fault.message() + "\n";
  ok_ = opener_->faults().empty();
  report_ += fmt::format("{}: {} repairs, {} Topics\n", ok_ ? "ok" : "FAILED", repaired_, topics_.size());
  state_ = State::done;
}

}  // namespace rq::storage
