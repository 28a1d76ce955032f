#include "io/sim/machine_disk.h"

#include <algorithm>

#include "core/base/check.h"

namespace rq::sim {

MachineDisk::Streams::Streams(const Random& base)
    : latency(base.split("latency")),
      stall(base.split("stall")),
      sync(base.split("sync")),
      sync_files(base.split("sync files")),
      space(base.split("space")),
      write(base.split("write")),
      torn(base.split("torn")),
      read(base.split("read")),
      open(base.split("open")),
      names(base.split("names")),
      directories(base.split("directories")),
      kill(base.split("kill")),
      power(base.split("power")) {}

MachineDisk::MachineDisk(Kernel& world_kernel, std::string_view machine)
    : kernel(world_kernel), streams(world_kernel.root.split("disk").split(machine)), name_(machine) {}

std::uint64_t MachineDisk::fit(const Inode& node, std::uint64_t wanted) const {
  const std::uint64_t available = capacity > used_ ? capacity - used_ : 0;
  return std::min(wanted, std::max(node.charged + available, node.data.size()));
}

void MachineDisk::recharge(Inode& node) {
  const bool alive = node.names_now > 0 || node.handles > 0;
  const std::uint64_t charge =
      alive && node.kind == io::FileKind::file ? std::max<std::uint64_t>(node.data.size(), node.reserved) : 0;
  used_ = used_ - node.charged + charge;
  node.charged = charge;
}

void MachineDisk::handle_opened(Inode& node) {
  ++node.handles;
  ++handles_;
}

void MachineDisk::handle_closed(Inode& node) {
  RQ_CHECK(node.handles > 0 && handles_ > 0);
  --node.handles;
  --handles_;
  recharge(node);
}

void MachineDisk::power_loss() {
  RQ_CHECK(handles_ == 0);
  ++kernel.counts.power_losses;
  const std::uint64_t lost_names = tree.power_loss(streams.power);
  kernel.counts.lost_names += lost_names;
  used_ = 0;
  tree.each_file([this](const std::string& path, const InodePtr& node) {
    const bool dirty = node->data.dirty();
    const FileData::Loss loss = node->data.power_loss(streams.power, faults.hostile);
    kernel.counts.lost_extents += loss.lost;
    kernel.counts.cut_extents += loss.cut;
    node->charged = 0;
    node->settled_ns = 0;
    recharge(*node);
    if (dirty) kernel.trace("disk.power_loss.file", path, node->data.size(), loss.lost);
  });
  kernel.trace("disk.power_loss", name_, used_, lost_names);
}

bool MachineDisk::exists(std::string_view path) const { return tree.find(path).node != nullptr; }

std::string MachineDisk::content(std::string_view path) const {
  const InodePtr node = tree.find(path).node;
  return node == nullptr ? "" : node->data.content();
}

std::string MachineDisk::durable_content(std::string_view path) const {
  const InodePtr node = tree.durable_find(path);
  return node == nullptr ? "" : node->data.certain();
}

void MachineDisk::ensure_parents(std::string_view path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    const FileTree::Place place = tree.find(path.substr(0, slash));
    if (place.node == nullptr) tree.create(place, io::FileKind::directory);
  }
}

void MachineDisk::put(std::string_view path, std::string_view content) {
  ensure_parents(path);
  const FileTree::Place place = tree.find(path, false);
  const InodePtr node = place.node != nullptr ? place.node : tree.create(place, io::FileKind::file);
  RQ_CHECK(node->kind != io::FileKind::directory);
  node->data.put(content);
  tree.harden(path);
  recharge(*node);
}

void MachineDisk::link(std::string_view path, std::string_view target) {
  ensure_parents(path);
  const FileTree::Place place = tree.find(path, false);
  RQ_CHECK(place.node == nullptr);
  tree.create(place, io::FileKind::symlink)->data.put(target);
  tree.harden(path);
}

void MachineDisk::remove(std::string_view path) {
  const FileTree::Place place = tree.find(path, false);
  if (place.node == nullptr || place.dir == nullptr) return;
  tree.erase(place);
  recharge(*place.node);
}

bool MachineDisk::rot(std::string_view path, std::uint64_t at) {
  const InodePtr node = tree.find(path).node;
  if (node == nullptr || node->kind != io::FileKind::file || !node->data.flip(at)) return false;
  rots_.push_back({std::string(path), node, at});
  kernel.trace("disk.rot", path, at, 0);
  return true;
}

void MachineDisk::mend(std::string_view path) {
  std::erase_if(rots_, [&](const Rot& rot) {
    if (rot.path != path) return false;
    // Cut meanwhile, the byte is gone; a rewrite of the damaged bytes in place left them as they were.
    (void)rot.node->data.flip(rot.at);
    return true;
  });
}

bool MachineDisk::spoil(std::string_view path, std::uint64_t at) {
  const InodePtr node = tree.find(path).node;
  if (node == nullptr || node->kind != io::FileKind::file || at >= node->data.size()) return false;
  node->unreadable = at;
  kernel.trace("disk.spoil", path, at, 0);
  return true;
}

std::vector<std::string> MachineDisk::rotten() const {
  std::vector<std::string> paths;
  for (const Rot& rot : rots_)
    if (rot.node->names_now > 0) paths.push_back(rot.path);
  return paths;
}

std::vector<std::string> MachineDisk::files() const {
  std::vector<std::string> paths;
  tree.each_file([&](const std::string& path, const InodePtr&) { paths.push_back(path); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace rq::sim
