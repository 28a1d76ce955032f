// The last step of a program that measures: its report on stdout.
#pragma once

#include <string_view>

namespace rq::bench {

// Writes the text and returns `status`; 1, with the reason on stderr, when not all of it could be written.
int print_report(std::string_view text, int status);

}  // namespace rq::bench
