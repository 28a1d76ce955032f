// The file system of one machine: the tree, the space it takes, and what a power loss does to it. Processes reach it through a
// DiskPort each.
//
//  I1 used() is the sum of max(size, reserved) over files that have a name or an open handle.
#pragma once

#include <string>
#include <vector>

#include "io/sim/file_tree.h"
#include "io/sim/kernel.h"
#include "io/sim/world.h"

namespace rq::sim {

class DiskPort;

class MachineDisk final : public SimDisk {
 public:
  MachineDisk(Kernel& world_kernel, std::string_view machine);

  void power_loss() override;
  bool exists(std::string_view path) const override;
  std::string content(std::string_view path) const override;
  std::string durable_content(std::string_view path) const override;
  void put(std::string_view path, std::string_view content) override;
  void remove(std::string_view path) override;
  std::vector<std::string> files() const override;
  bool rot(std::string_view path, std::uint64_t at) override;
  void mend(std::string_view path) override;
  bool spoil(std::string_view path, std::uint64_t at) override;
  std::vector<std::string> rotten() const override;
  void link(std::string_view path, std::string_view target) override;
  std::uint64_t used() const override { return used_; }
  std::uint64_t handles_open() const override { return handles_; }

  const std::string& name() const { return name_; }

  // For the ports.
  std::uint64_t next_sequence() { return ++sequence_; }
  std::uint64_t last_sequence() const { return sequence_; }
  std::uint64_t next_serial() { return ++serial_; }
  // The largest size up to `wanted` that the file may have.
  std::uint64_t fit(const Inode& node, std::uint64_t wanted) const;
  void recharge(Inode& node);  // after its size, reservation, name or handles changed
  void handle_opened(Inode& node);
  void handle_closed(Inode& node);

  Kernel& kernel;
  FileTree tree;
  // One stream a purpose, see Kernel I2.
  struct Streams {
    explicit Streams(const Random& base);
    Random latency, stall, sync, sync_files, space, write, torn, read, open, names, directories, kill, power;
  } streams;

 private:
  void ensure_parents(std::string_view path);

  struct Rot {
    std::string path;  // when it happened
    InodePtr node;
    std::uint64_t at;
  };
  std::vector<Rot> rots_;
  std::string name_;
  std::uint64_t sequence_ = 0, serial_ = 0;
  std::uint64_t used_ = 0, handles_ = 0;
};

}  // namespace rq::sim
