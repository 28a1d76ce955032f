// From errno to the error classes of the ports.
#pragma once

#include <cerrno>

#include "core/io/ports.h"

namespace rq::real {

// `op` is a string literal: the call that failed.
io::Error error_from(int os, const char* op);
// The same for a stream: a peer that went away is reset, however the kernel words it.
io::Error stream_error(int os, const char* op);
inline bool would_block(int os) { return os == EAGAIN || os == EWOULDBLOCK; }

}  // namespace rq::real
