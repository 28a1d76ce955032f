#include "sim/rot.h"

#include <vector>

namespace rq::sim {

void Rot::flip(Random& draws) {
  std::vector<std::string> sealed;
  const std::vector<std::string> files = disk_.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool sidecar = files[i].ends_with(".rqidx");
    const bool segment = files[i].ends_with(".rqlog") && i + 1 < files.size() &&
                         files[i + 1].find("/segment-") != std::string::npos &&
                         files[i + 1].substr(0, files[i + 1].rfind('/')) == files[i].substr(0, files[i].rfind('/'));
    if (sidecar || segment) sealed.push_back(files[i]);
  }
  if (sealed.empty()) return;
  const std::string& path = sealed[draws.below(sealed.size())];
  const std::uint64_t size = disk_.content(path).size();
  if (size == 0 || !disk_.rot(path, draws.below(size))) return;
  ++flipped_;
  rotten_.insert(path);
}

bool Rot::mend(const std::string& reason) {
  for (const std::string& path : rotten_) {
    if (reason.find(path.substr(path.find("topics/"))) == std::string::npos) continue;
    disk_.mend(path);
    ++found_;
    return true;
  }
  return false;
}

void Rot::mend_all() {
  for (const std::string& path : disk_.rotten()) disk_.mend(path);
}

}  // namespace rq::sim
