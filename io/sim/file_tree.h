// Directories and names of one disk, twice: as the running system sees them, and as the disk has them.
//
//  I1 A change of names is in force at once and durable at the sync of its directories: both of them for a rename across two.
//  I2 At power loss each change that no sync covered may be durable or not. Of the changes of one file a prefix survives, so a
//     file never has two names, and a rename leaves the old or the new name.
//  I3 An Inode lives while a name, a change not yet durable, or an open handle holds it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/io/ports.h"
#include "io/sim/file_data.h"

namespace rq::sim {

struct Inode;
using InodePtr = std::shared_ptr<Inode>;

struct Inode {
  std::uint64_t id = 0;
  io::FileKind kind = io::FileKind::file;
  FileData data;  // of a symbolic link: its target
  std::uint64_t reserved = 0;
  std::uint64_t charged = 0;         // of the disk's space
  std::uint32_t names_now = 0;       // 0 or 1
  std::uint32_t handles = 0;         // open ones
  std::uint64_t lock_owner = 0;      // handle serial; 0: free
  std::uint32_t lock_shares = 0;     // shared locks
  std::uint64_t unreadable = ~0ull;  // a byte that the device does not give back
  std::int64_t settled_ns = 0;       // when the last write submitted so far takes effect
  std::map<std::string, InodePtr, std::less<>> names, durable_names;
};

class FileTree {
 public:
  FileTree();

  // Where a path leads: `dir` is null when a directory on the way is missing, `node` when the last name is.
  struct Place {
    InodePtr dir;
    std::string name;
    InodePtr node;
  };
  Place find(std::string_view path, bool follow = true) const;  // "", "." and "/" are the root, whose `dir` is null
  const InodePtr& root() const { return root_; }

  InodePtr create(const Place& place, io::FileKind kind);  // place.dir is set, place.node is not
  void unlink(const Place& place);
  void rename(const Place& from, const Place& to);  // what `to` was is unlinked
  void sync(const InodePtr& dir);

  std::uint64_t power_loss(Random& draws);  // number of changes lost

  InodePtr durable_find(std::string_view path) const;
  void harden(std::string_view path);  // every name on the way is durable now
  void erase(const Place& place);      // gone, durably

  template <class Visit>
  void each_file(const Visit& visit) const {
    walk("", *root_, visit);
  }

 private:
  // `from` loses its name, `to` gets it; one of them may be missing.
  struct Change {
    InodePtr node;
    InodePtr from, to;
    std::string from_name, to_name;
    bool from_waits, to_waits;
  };
  static void bind(Inode& dir, const std::string& name, const InodePtr& node);
  static void unbind(Inode& dir, const std::string& name);
  static void make_durable(const Change& change);
  static bool conflict(const Change& earlier, const Change& later);
  static void restore(Inode& dir);

  template <class Visit>
  static void walk(const std::string& prefix, const Inode& dir, const Visit& visit) {
    for (const auto& [name, node] : dir.names) {
      const std::string path = prefix + "/" + name;
      if (node->kind == io::FileKind::directory) {
        walk(path, *node, visit);
      } else {
        visit(path, node);
      }
    }
  }

  InodePtr root_;
  std::uint64_t last_id_ = 1;
  std::vector<Change> changes_;  // not durable, in order
};

}  // namespace rq::sim
