// `rustqueued --salvage PATH`: see core/storage/salvage.h. Returns the exit status: 0 when the directory opens afterwards.
#pragma once

#include <string>

namespace rq::service {

int salvage_directory(const std::string& path);

}  // namespace rq::service
