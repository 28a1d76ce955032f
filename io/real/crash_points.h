// Crash points for the SIGKILL tests (D-43): with RQ_CRASH_INJECTION the process kills itself at one of the boundaries where a
// crash leaves the most to recover from. Without it, which is every program but the worker of tests/kill, nothing of this is
// compiled.
//
//   append      records are in a segment file, nothing is synced
//   synced      a segment file is synced, nobody was answered
//   checkpoint  a checkpoint's temporary is synced, not renamed
//   collect     the manifest is durable, a collected segment is not removed yet
//   collected   a collected segment is removed, its sidecar is not
//
// The environment says which one and how often it passes before: RQ_CRASH_AT="synced:12".
#pragma once

#ifdef RQ_CRASH_INJECTION
namespace rq::real {
void crash_point_of_file(const char* point, int fd);  // decides by the name of the file
void crash_point_of_path(const char* point, const char* path);
}  // namespace rq::real
#define RQ_CRASH_FILE(point, fd) ::rq::real::crash_point_of_file(point, fd)
#define RQ_CRASH_PATH(point, path) ::rq::real::crash_point_of_path(point, path)
#else
#define RQ_CRASH_FILE(point, fd) static_cast<void>(0)
#define RQ_CRASH_PATH(point, path) static_cast<void>(0)
#endif
