#include "io/real/errors.h"

#include <cerrno>

namespace rq::real {
namespace {

io::Errc classify(int os) {
  switch (os) {
    case 0:
      return io::Errc::ok;
    case ENOSPC:
    case EDQUOT:
      return io::Errc::no_space;
    case EMFILE:
    case ENFILE:
      return io::Errc::no_handles;
    case ENOENT:
    case ENOTDIR:
      return io::Errc::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return io::Errc::exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return io::Errc::denied;
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ESHUTDOWN:
    case ECONNABORTED:
      return io::Errc::reset;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return io::Errc::refused;
    case ETIMEDOUT:
      return io::Errc::timed_out;
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return io::Errc::bad_address;
    default:
      return io::Errc::io;
  }
}

}  // namespace

io::Error error_from(int os, const char* op) { return {classify(os), os, op}; }

io::Error stream_error(int os, const char* op) {
  io::Error error = error_from(os, op);
  if (error.code == io::Errc::timed_out || error.code == io::Errc::refused) error.code = io::Errc::reset;
  return error;
}

}  // namespace rq::real
