// Which routes anybody may use, because their class has no token file (D-33).
#pragma once

#include <string>

#include "core/broker/config.h"

namespace rq::broker {

// "publish,admin,registry,console" or a part of it; empty when every class has a file. The registry's routes take the console's
// token as well, so they are open only without either.
std::string open_token_classes(const Config::Security& security);

}  // namespace rq::broker
