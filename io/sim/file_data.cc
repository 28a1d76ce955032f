#include "io/sim/file_data.h"

#include <algorithm>

namespace rq::sim {
namespace {

// Like pwrite: a gap becomes zeros.
void overlay(std::string& file, std::uint64_t at, std::string_view bytes) {
  if (bytes.empty()) return;
  if (at == file.size()) {
    file.append(bytes);
    return;
  }
  if (at + bytes.size() > file.size()) file.resize(at + bytes.size(), '\0');
  std::memcpy(file.data() + at, bytes.data(), bytes.size());
}

}  // namespace

void FileData::write(std::uint64_t sequence, std::uint64_t at, ConstBuf bytes) {
  if (bytes.empty()) return;
  sequence = not_before_last(sequence);
  // Parts of one append are one extent.
  if (!extents_.empty() && extents_.back().sequence == sequence && !extents_.back().truncation &&
      extents_.back().at + extents_.back().bytes == at) {
    extents_.back().bytes += bytes.size();
  } else {
    extents_.push_back({sequence, at, bytes.size(), pending_.size(), false});
  }
  pending_.append(text_of(bytes));
  overlay(cache_, at, text_of(bytes));
}

void FileData::truncate(std::uint64_t sequence, std::uint64_t bytes) {
  if (bytes == cache_.size()) return;
  cache_.resize(bytes, '\0');
  extents_.push_back({not_before_last(sequence), bytes, 0, pending_.size(), true});
}

void FileData::cover(std::uint64_t at, std::uint64_t end) {
  if (doubtful_.empty()) return;
  std::vector<Doubtful> rest;
  for (Doubtful& d : doubtful_) {
    const std::uint64_t d_end = d.at + d.bytes.size();
    if (d_end <= at || d.at >= end) {
      rest.push_back(std::move(d));
      continue;
    }
    if (d.at < at) rest.push_back({d.at, d.bytes.substr(0, at - d.at)});
    if (d_end > end) rest.push_back({end, d.bytes.substr(end - d.at)});
  }
  doubtful_ = std::move(rest);
}

void FileData::drop_extents(std::size_t count) {
  extents_.erase(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(count));
  if (extents_.empty()) {
    pending_.clear();
    return;
  }
  const std::uint64_t gone = extents_.front().position;
  if (gone < pending_.size() / 2 || gone == 0) return;
  pending_.erase(0, gone);
  for (Extent& e : extents_) e.position -= gone;
}

void FileData::sync(std::uint64_t through) {
  std::size_t count = 0;
  for (; count < extents_.size() && extents_[count].sequence <= through; ++count) {
    const Extent& e = extents_[count];
    if (e.truncation) {
      if (e.at < disk_.size() || !doubtful_.empty()) cover(e.at, ~0ull);
      disk_.resize(e.at, '\0');
      continue;
    }
    cover(e.at, e.at + e.bytes);
    overlay(disk_, e.at, data_of(e));
  }
  drop_extents(count);
}

void FileData::fail_sync(std::uint64_t through) {
  std::size_t count = 0;
  for (; count < extents_.size() && extents_[count].sequence <= through; ++count) {
    const Extent& e = extents_[count];
    if (e.truncation) {  // lengths are journaled; what is lost is data
      cover(e.at, ~0ull);
      disk_.resize(std::min<std::uint64_t>(disk_.size(), e.at));
      continue;
    }
    cover(e.at, e.at + e.bytes);
    doubtful_.push_back({e.at, std::string(data_of(e))});
  }
  drop_extents(count);
}

std::string FileData::certain() const {
  std::uint64_t end = disk_.size();
  // Writing what is there already endangers nothing.
  const auto change = [&](std::uint64_t at, std::string_view bytes) {
    while (!bytes.empty() && at < disk_.size() && disk_[at] == bytes.front()) {
      bytes.remove_prefix(1);
      ++at;
    }
    if (!bytes.empty()) end = std::min(end, at);
  };
  for (const Doubtful& d : doubtful_) change(d.at, d.bytes);
  for (const Extent& e : extents_) {
    if (e.truncation) {
      end = std::min(end, e.at);
    } else {
      change(e.at, data_of(e));
    }
  }
  return disk_.substr(0, end);
}

FileData::Loss FileData::power_loss(Random& draws, bool hostile) {
  Loss loss;
  enum class Mood { keep, lose, cut_at, each };
  static constexpr Mood kMoods[] = {Mood::keep, Mood::lose, Mood::cut_at, Mood::cut_at, Mood::each, Mood::each};
  const Mood mood = kMoods[draws.below(6)];
  const std::size_t total = doubtful_.size() + extents_.size();
  const std::size_t survivors = total == 0 ? 0 : draws.below(total);
  std::size_t index = 0;
  // Bytes of a write that reach the disk.
  const auto survive = [&](std::uint64_t bytes) -> std::uint64_t {
    const std::size_t here = index++;
    switch (mood) {
      case Mood::keep:
        return bytes;
      case Mood::lose:
        return 0;
      case Mood::cut_at:
        return here < survivors ? bytes : here == survivors ? draws.below(bytes + 1) : 0;
      case Mood::each:
        break;
    }
    const std::uint64_t fate = draws.below(4);
    return fate < 2 ? bytes : fate == 2 ? draws.below(bytes + 1) : 0;
  };
  const auto apply = [&](std::uint64_t at, std::string_view bytes) {
    std::uint64_t kept = survive(bytes.size());
    if (at > disk_.size() && !(hostile && draws.below(4) == 0)) kept = 0;
    if (kept == 0) {
      ++loss.lost;
      return;
    }
    if (kept < bytes.size()) ++loss.cut;
    overlay(disk_, at, bytes.substr(0, kept));
  };
  for (const Doubtful& d : doubtful_) apply(d.at, d.bytes);
  for (const Extent& e : extents_) {
    if (!e.truncation) {
      apply(e.at, data_of(e));
      continue;
    }
    if (survive(1) == 0) {  // what followed needed this truncation
      ++loss.lost;
      break;
    }
    disk_.resize(e.at, '\0');
  }
  doubtful_.clear();
  extents_.clear();
  pending_.clear();
  cache_ = disk_;
  return loss;
}

bool FileData::flip(std::uint64_t at) {
  if (dirty() || at >= cache_.size() || at >= disk_.size()) return false;
  cache_[at] = static_cast<char>(cache_[at] ^ 1);
  disk_[at] = static_cast<char>(disk_[at] ^ 1);
  return true;
}

void FileData::put(std::string_view content) {
  cache_.assign(content);
  disk_ = cache_;
  extents_.clear();
  pending_.clear();
  doubtful_.clear();
}

}  // namespace rq::sim
