#include "core/storage/file_read.h"

#include <algorithm>

namespace rq::storage {

void FileRead::begin(std::string path, std::uint64_t bytes_max, bool prefix) {
  *this = FileRead();
  path_ = std::move(path);
  bytes_max_ = bytes_max;
  prefix_ = prefix;
}

bool FileRead::finish(Result result) {
  result_ = result;
  return true;
}

bool FileRead::poll(DiskCall call) {
  const io::Error error = state_ == State::start ? io::Error{} : call.op.error;
  switch (state_) {
    case State::start:
      state_ = State::stat;
      call.disk.stat(call.op, path_, true, stat_);
      return false;
    case State::stat:
      if (error.code == io::Errc::not_found) return finish(Result::missing);
      if (error) {
        error_ = error;
        return finish(Result::failed);
      }
      if (stat_.bytes > bytes_max_ && !prefix_) return finish(Result::too_large);
      state_ = State::open;
      call.disk.open(call.op, path_, io::OpenMode::read);
      return false;
    case State::open:
      if (error) {
        error_ = error;
        return finish(Result::failed);
      }
      file_ = call.op.file();
      content_.resize(std::min(stat_.bytes, bytes_max_));
      state_ = State::read;
      call.disk.read(call.op, file_, 0, std::as_writable_bytes(std::span(content_.data(), content_.size())));
      return false;
    case State::read:
      if (error && error.code != io::Errc::eof) error_ = error;
      content_.resize(error ? 0 : call.op.value);
      state_ = State::close;
      call.disk.close(call.op, file_);
      return false;
    case State::close:
      return finish(error_ ? Result::failed : Result::ok);
  }
  return true;
}

}  // namespace rq::storage
