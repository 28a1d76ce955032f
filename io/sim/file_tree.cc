#include "io/sim/file_tree.h"

#include <algorithm>

#include "core/base/check.h"

namespace rq::sim {
namespace {

// The components of a path; "." and empty ones go, ".." takes one back.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  parts.reserve(8);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return parts;
}

constexpr int kLinksMax = 8;

}  // namespace

FileTree::FileTree() : root_(std::make_shared<Inode>()) {
  root_->id = 1;
  root_->kind = io::FileKind::directory;
  root_->names_now = 1;
}

FileTree::Place FileTree::find(std::string_view path, bool follow) const {
  std::string expanded(path);
  for (int links = 0; links < kLinksMax; ++links) {
    const std::vector<std::string_view> parts = split_path(expanded);
    Place place{nullptr, "", root_};
    std::string again;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (place.node == nullptr || place.node->kind != io::FileKind::directory) return {};
      place.dir = place.node;
      const auto found = place.dir->names.find(parts[i]);
      const bool last = i + 1 == parts.size();
      place.node = found == place.dir->names.end() ? nullptr : found->second;
      if (last) place.name = std::string(parts[i]);
      if (place.node == nullptr || place.node->kind != io::FileKind::symlink || (last && !follow)) continue;
      const std::string& target = place.node->data.content();
      if (!target.starts_with('/')) {
        for (std::size_t k = 0; k < i; ++k) again.append("/").append(parts[k]);
        again.append("/");
      }
      again.append(target);
      for (std::size_t k = i + 1; k < parts.size(); ++k) again.append("/").append(parts[k]);
      break;
    }
    if (again.empty()) return place;
    expanded = std::move(again);
  }
  return {};
}

void FileTree::bind(Inode& dir, const std::string& name, const InodePtr& node) {
  InodePtr& slot = dir.names[name];
  if (slot != nullptr) slot->names_now = 0;
  slot = node;
  node->names_now = 1;
}

void FileTree::unbind(Inode& dir, const std::string& name) {
  const auto found = dir.names.find(name);
  RQ_CHECK(found != dir.names.end());
  found->second->names_now = 0;
  dir.names.erase(found);
}

InodePtr FileTree::create(const Place& place, io::FileKind kind) {
  RQ_CHECK(place.dir != nullptr && place.node == nullptr);
  InodePtr node = std::make_shared<Inode>();
  node->id = ++last_id_;
  node->kind = kind;
  bind(*place.dir, place.name, node);
  changes_.push_back({node, nullptr, place.dir, "", place.name, false, true});
  return node;
}

void FileTree::unlink(const Place& place) {
  unbind(*place.dir, place.name);
  changes_.push_back({place.node, place.dir, nullptr, place.name, "", true, false});
}

void FileTree::rename(const Place& from, const Place& to) {
  if (from.node == to.node) return;
  unbind(*from.dir, from.name);
  bind(*to.dir, to.name, from.node);
  changes_.push_back({from.node, from.dir, to.dir, from.name, to.name, true, true});
}

void FileTree::make_durable(const Change& change) {
  if (change.from != nullptr) {
    const auto found = change.from->durable_names.find(change.from_name);
    if (found != change.from->durable_names.end() && found->second == change.node) change.from->durable_names.erase(found);
  }
  if (change.to != nullptr) change.to->durable_names[change.to_name] = change.node;
}

bool FileTree::conflict(const Change& earlier, const Change& later) {
  if (earlier.node == later.node) return true;
  const auto touches = [&](const InodePtr& dir, const std::string& name) {
    return dir != nullptr && ((dir == later.from && name == later.from_name) || (dir == later.to && name == later.to_name));
  };
  return touches(earlier.from, earlier.from_name) || touches(earlier.to, earlier.to_name);
}

void FileTree::sync(const InodePtr& dir) {
  for (Change& change : changes_) {
    if (change.from == dir) change.from_waits = false;
    if (change.to == dir) change.to_waits = false;
  }
  // A change goes with those before it that it builds on, wherever they wait.
  for (std::size_t later = changes_.size(); later-- > 0;) {
    if (changes_[later].from_waits || changes_[later].to_waits) continue;
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (conflict(changes_[earlier], changes_[later])) changes_[earlier].from_waits = changes_[earlier].to_waits = false;
    }
  }
  std::erase_if(changes_, [](const Change& change) {
    if (change.from_waits || change.to_waits) return false;
    make_durable(change);
    return true;
  });
}

void FileTree::restore(Inode& dir) {
  dir.names = dir.durable_names;
  for (const auto& [name, node] : dir.names) {
    node->names_now = 1;
    if (node->kind == io::FileKind::directory) restore(*node);
  }
}

std::uint64_t FileTree::power_loss(Random& draws) {
  // One mood for all: everything made it, nothing did, or each change by itself.
  const std::uint64_t mood = draws.below(4);
  std::vector<const Inode*> stopped;
  std::uint64_t lost = 0;
  for (const Change& change : changes_) {
    const bool after_lost = std::find(stopped.begin(), stopped.end(), change.node.get()) != stopped.end();
    const bool kept = mood == 0 || (mood >= 2 && draws.below(2) == 0);
    if (kept && !after_lost) {
      make_durable(change);
      continue;
    }
    ++lost;
    if (!after_lost) stopped.push_back(change.node.get());
  }
  changes_.clear();
  restore(*root_);
  return lost;
}

InodePtr FileTree::durable_find(std::string_view path) const {
  InodePtr node = root_;
  for (const std::string_view part : split_path(path)) {
    const auto found = node->durable_names.find(part);
    if (found == node->durable_names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

void FileTree::erase(const Place& place) {
  const Change now{place.node, place.dir, nullptr, place.name, "", false, false};
  std::erase_if(changes_, [&](const Change& earlier) { return conflict(earlier, now); });
  unbind(*place.dir, place.name);
  place.dir->durable_names.erase(place.name);
}

void FileTree::harden(std::string_view path) {
  InodePtr dir = root_;
  for (const std::string_view part : split_path(path)) {
    const auto found = dir->names.find(part);
    RQ_CHECK(found != dir->names.end());
    const Change now{found->second, nullptr, dir, "", found->first, false, false};
    std::erase_if(changes_, [&](const Change& earlier) { return conflict(earlier, now); });
    make_durable(now);
    dir = found->second;
  }
}

}  // namespace rq::sim
