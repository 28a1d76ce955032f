#include "tests/io/port_world.h"

namespace rq::test {

io::Errc Ports::open(std::string_view name, io::OpenMode mode, io::FileId& id) {
  WaitOp op;
  disk().open(op, path(name), mode);
  wait(op);
  id = op.file();
  return op.error.code;
}

io::FileId Ports::opened(std::string_view name, io::OpenMode mode) {
  io::FileId id{};
  EXPECT_EQ(open(name, mode, id), io::Errc::ok) << name;
  return id;
}

io::Errc Ports::append(io::FileId id, std::string_view text) {
  WaitOp op;
  const ConstBuf bytes = bytes_of(text);
  disk().append(op, id, {&bytes, 1});
  wait(op);
  if (!op.error) {
    EXPECT_EQ(op.value, text.size());
  }
  return op.error.code;
}

io::Errc Ports::barrier(std::vector<io::BarrierFile> files) {
  WaitOp op;
  disk().barrier(op, files);
  return wait(op).error.code;
}

io::Errc Ports::close(io::FileId id) {
  WaitOp op;
  disk().close(op, id);
  return wait(op).error.code;
}

std::string Ports::content(std::string_view name) {
  io::FileId id{};
  if (open(name, io::OpenMode::read, id) != io::Errc::ok) return "<error>";
  std::string bytes(1 << 20, '\0');
  WaitOp op;
  disk().read(op, id, 0, std::as_writable_bytes(std::span(bytes)));
  wait(op);
  bytes.resize(op.error ? 0 : op.value);
  close(id);
  return op.error && op.error.code != io::Errc::eof ? "<error>" : bytes;
}

void Ports::write_file(std::string_view name, std::string_view text) {
  const io::FileId id = opened(name, io::OpenMode::create);
  if (!text.empty()) {
    ASSERT_EQ(append(id, text), io::Errc::ok);
  }
  ASSERT_EQ(close(id), io::Errc::ok);
}

io::Errc Ports::stat(std::string_view name, io::Stat& out, bool follow) {
  WaitOp op;
  disk().stat(op, path(name), follow, out);
  return wait(op).error.code;
}

std::vector<std::string> Ports::names(std::string_view dir) {
  std::vector<io::DirEntry> entries;
  WaitOp op;
  disk().list(op, dir.empty() ? world().root() : path(dir), entries);
  EXPECT_EQ(wait(op).error.code, io::Errc::ok);
  std::vector<std::string> found;
  for (const io::DirEntry& entry : entries) found.push_back(entry.name);
  return found;
}

io::StreamId Ports::listening() {
  WaitOp op;
  net().listen(op, world().listen_address());
  EXPECT_EQ(wait(op).error.code, io::Errc::ok);
  return op.stream();
}

Ports::Pair Ports::connected() {
  Pair pair;
  pair.listener = listening();
  WaitOp accept, connect;
  net().accept(accept, pair.listener);
  net().connect(connect, net().local_address(pair.listener), host().clock.now() + 60 * kSecond);
  EXPECT_EQ(wait(connect).error.code, io::Errc::ok);
  EXPECT_TRUE(world_->run_until([&] { return !accept.in_flight; }));
  EXPECT_EQ(accept.error.code, io::Errc::ok);
  pair.client = connect.stream();
  pair.server = accept.stream();
  return pair;
}

io::Errc Ports::write_all(io::StreamId id, std::string text) {
  std::size_t at = 0;
  while (at < text.size()) {
    WaitOp op;
    const ConstBuf rest = bytes_of(text).subspan(at);
    net().write_some(op, id, {&rest, 1});
    wait(op);
    if (op.error) return op.error.code;
    EXPECT_GE(op.value, 1u);
    EXPECT_LE(op.value, rest.size());
    at += op.value;
  }
  return io::Errc::ok;
}

std::string Ports::read_bytes(io::StreamId id, std::size_t count, io::Errc* end) {
  std::string bytes;
  while (bytes.size() < count) {
    WaitRead op;
    net().read_some(op, id, chunks_);
    wait(op);
    if (op.error) {
      if (end != nullptr) *end = op.error.code;
      break;
    }
    EXPECT_FALSE(op.data.empty());
    bytes += text_of(op.data.bytes());
  }
  return bytes;
}

}  // namespace rq::test
