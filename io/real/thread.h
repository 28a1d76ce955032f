// A thread beside the loop's.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace rq::real {

// It takes no signals, which belong to the loop's thread. `name` is what tools show: at most 15 bytes.
std::thread start_thread(const std::string& name, std::function<void()> run);

}  // namespace rq::real
