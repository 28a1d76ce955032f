// The Disk port as both worlds keep it (core/io/ports.h).
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;
using io::OpenMode;

class DiskPorts : public Ports {};
INSTANTIATE_TEST_SUITE_P(World, DiskPorts, testing::Values("real", "sim"),
                         [](const auto& world) { return std::string(world.param); });

// ---- opening

TEST_P(DiskPorts, ReadOpensOnlyWhatExists) {
  io::FileId id{};
  EXPECT_EQ(open("none", OpenMode::read, id), Errc::not_found);
  EXPECT_EQ(open("none/below", OpenMode::read, id), Errc::not_found);
  write_file("there", "x");
  EXPECT_EQ(open("there", OpenMode::read, id), Errc::ok);
  EXPECT_NE(id, io::FileId::none);
}

TEST_P(DiskPorts, AppendCreatesAFileAndKeepsWhatIsInIt) {
  const io::FileId first = opened("log", OpenMode::append);
  EXPECT_EQ(append(first, "one"), Errc::ok);
  EXPECT_EQ(close(first), Errc::ok);
  const io::FileId second = opened("log", OpenMode::append);
  EXPECT_EQ(append(second, "two"), Errc::ok);
  EXPECT_EQ(content("log"), "onetwo");
}

TEST_P(DiskPorts, AppendNewRefusesATakenName) {
  io::FileId id{};
  EXPECT_EQ(open("new", OpenMode::append_new, id), Errc::ok);
  EXPECT_EQ(open("new", OpenMode::append_new, id), Errc::exists);
}

TEST_P(DiskPorts, CreateEmptiesAFileThatExists) {
  write_file("file", "old content");
  const io::FileId id = opened("file", OpenMode::create);
  EXPECT_EQ(append(id, "new"), Errc::ok);
  EXPECT_EQ(content("file"), "new");
}

TEST_P(DiskPorts, RewriteOpensOnlyWhatExists) {
  io::FileId id{};
  EXPECT_EQ(open("none", OpenMode::rewrite, id), Errc::not_found);
}

TEST_P(DiskPorts, AFileInAMissingDirectoryIsNotFound) {
  io::FileId id{};
  EXPECT_EQ(open("no/dir", OpenMode::append, id), Errc::not_found);
}

TEST_P(DiskPorts, ADirectoryIsNotAFile) {
  WaitOp make;
  disk().make_dir(make, path("dir"));
  EXPECT_EQ(wait(make).error.code, Errc::ok);
  io::FileId id{};
  EXPECT_NE(open("dir", OpenMode::read, id), Errc::ok);
  EXPECT_NE(open("dir", OpenMode::append, id), Errc::ok);
}

// ---- reading and writing

TEST_P(DiskPorts, AppendsLandInTheOrderOfSubmission) {
  const io::FileId id = opened("log", OpenMode::append);
  std::deque<WaitOp> ops;
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 50; ++i) texts.push_back("record " + std::to_string(i) + ";");
  for (const std::string& text : texts) {
    expected += text;
    const ConstBuf pieces[] = {bytes_of(text).first(3), {}, bytes_of(text).subspan(3)};
    disk().append(ops.emplace_back(), id, pieces);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ASSERT_TRUE(world().run_until([&] { return !ops[i].in_flight; }));
    EXPECT_EQ(ops[i].error.code, Errc::ok);
    EXPECT_EQ(ops[i].value, texts[i].size());
  }
  EXPECT_EQ(content("log"), expected);
}

TEST_P(DiskPorts, AnAppendOfManyMegabytesIsWhole) {
  const io::FileId id = opened("log", OpenMode::append);
  EXPECT_EQ(append(id, "head"), Errc::ok);
  std::string big(5'000'003, 'x');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i % 23);
  WaitOp first, second, sync;
  const ConstBuf pieces[] = {bytes_of(big).first(3'000'000), bytes_of(big).subspan(3'000'000)};
  const ConstBuf tail = bytes_of("tail");
  disk().append(first, id, pieces);
  disk().append(second, id, {&tail, 1});
  const io::BarrierFile file{id};
  disk().barrier(sync, {&file, 1});
  EXPECT_EQ(wait(sync).error.code, Errc::ok);
  EXPECT_EQ(first.value, big.size());
  EXPECT_EQ(second.value, 4u);
  io::Stat facts;
  EXPECT_EQ(stat("log", facts), Errc::ok);
  ASSERT_EQ(facts.bytes, 4 + big.size() + 4);
  std::string read(big.size() + 8, '\0');
  const io::FileId reader = opened("log", OpenMode::read);
  WaitOp op;
  disk().read(op, reader, 0, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(wait(op).value, read.size());
  EXPECT_TRUE(read == "head" + big + "tail");
}

TEST_P(DiskPorts, AReadIsShortOnlyAtTheEndOfTheFile) {
  write_file("file", "0123456789");
  const io::FileId id = opened("file", OpenMode::read);
  const auto read = [&](std::uint64_t at, std::size_t bytes, Errc& code) {
    std::string into(bytes, '?');
    WaitOp op;
    disk().read(op, id, at, std::as_writable_bytes(std::span(into)));
    wait(op);
    code = op.error.code;
    into.resize(op.value);
    return into;
  };
  Errc code{};
  EXPECT_EQ(read(2, 5, code), "23456");
  EXPECT_EQ(code, Errc::ok);
  EXPECT_EQ(read(7, 100, code), "789");
  EXPECT_EQ(code, Errc::ok);
  EXPECT_EQ(read(10, 1, code), "");
  EXPECT_EQ(code, Errc::eof);
  EXPECT_EQ(read(4000, 1, code), "");
  EXPECT_EQ(code, Errc::eof);
}

TEST_P(DiskPorts, ARewriteChangesBytesInPlace) {
  write_file("file", "0123456789");
  const io::FileId id = opened("file", OpenMode::rewrite);
  WaitOp op;
  disk().rewrite(op, id, 3, bytes_of("abc"));
  EXPECT_EQ(wait(op).error.code, Errc::ok);
  EXPECT_EQ(op.value, 3u);
  EXPECT_EQ(content("file"), "012abc6789");
}

// As a sidecar is written: its regions first, what stands before them last.
TEST_P(DiskPorts, LargeRewritesBehindAHoleThatIsFilledLastAreAllThere) {
  write_file("file", "");
  const io::FileId id = opened("file", OpenMode::rewrite);
  const std::string second((2 << 20) + 5, 's'), first((1 << 20) + 3, 'f'), head(64, 'h');
  WaitOp ops[3], sync, all;
  disk().rewrite(ops[0], id, head.size() + first.size(), bytes_of(second));
  EXPECT_EQ(wait(ops[0]).value, second.size());
  disk().rewrite(ops[1], id, head.size(), bytes_of(first));
  EXPECT_EQ(wait(ops[1]).value, first.size());
  disk().rewrite(ops[2], id, 0, bytes_of(head));
  EXPECT_EQ(wait(ops[2]).value, head.size());
  const io::BarrierFile file{id, io::Durability::full};
  disk().barrier(sync, {&file, 1});
  EXPECT_EQ(wait(sync).error.code, Errc::ok);
  std::string read(head.size() + first.size() + second.size() + 1, '\0');
  disk().read(all, id, 0, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(wait(all).value, read.size() - 1);
  read.pop_back();
  EXPECT_TRUE(read == head + first + second);
}

TEST_P(DiskPorts, ARewriteHandleReadsAndTruncates) {
  write_file("file", "0123456789");
  const io::FileId id = opened("file", OpenMode::rewrite);
  WaitOp cut;
  disk().truncate(cut, id, 4);
  EXPECT_EQ(wait(cut).error.code, Errc::ok);
  std::string into(10, '?');
  WaitOp read;
  disk().read(read, id, 0, std::as_writable_bytes(std::span(into)));
  EXPECT_EQ(wait(read).value, 4u);
  EXPECT_EQ(content("file"), "0123");
}

TEST_P(DiskPorts, CallsOnOneHandleSeeWhatWasSubmittedBefore) {
  write_file("file", "0123456789");
  const io::FileId id = opened("file", OpenMode::rewrite);
  std::string into(10, '?');
  WaitOp rewrite, cut, sync, closed;
  disk().rewrite(rewrite, id, 0, bytes_of("ab"));
  disk().truncate(cut, id, 5);
  const io::BarrierFile file{id, io::Durability::full};
  disk().barrier(sync, {&file, 1});
  disk().close(closed, id);
  wait(closed);
  ASSERT_TRUE(world().run_until([&] { return !sync.in_flight && !cut.in_flight && !rewrite.in_flight; }));
  EXPECT_EQ(rewrite.error.code, Errc::ok);
  EXPECT_EQ(cut.error.code, Errc::ok);
  EXPECT_EQ(sync.error.code, Errc::ok);
  EXPECT_EQ(content("file"), "ab234");
}

TEST_P(DiskPorts, ReservedBlocksDoNotChangeTheLength) {
  write_file("file", "1234");
  const io::FileId id = opened("file", OpenMode::rewrite);
  WaitOp keep, give_back;
  disk().reserve(keep, id, 1 << 20);
  EXPECT_EQ(wait(keep).error.code, Errc::ok);
  EXPECT_EQ(content("file"), "1234");
  disk().reserve(give_back, id, 0);
  EXPECT_EQ(wait(give_back).error.code, Errc::ok);
  EXPECT_EQ(content("file"), "1234");
}

// ---- barriers

TEST_P(DiskPorts, ABarrierCompletesAfterTheAppendsBeforeIt) {
  const io::FileId a = opened("a", OpenMode::append), b = opened("b", OpenMode::append);
  WaitOp append_a, append_b, sync;
  const ConstBuf text = bytes_of("text");
  disk().append(append_a, a, {&text, 1});
  disk().append(append_b, b, {&text, 1});
  const io::BarrierFile files[] = {{a, io::Durability::data}, {b, io::Durability::full}};
  disk().barrier(sync, files);
  EXPECT_EQ(wait(sync).error.code, Errc::ok);
  EXPECT_FALSE(append_a.in_flight);
  EXPECT_FALSE(append_b.in_flight);
}

TEST_P(DiskPorts, BarriersOverTheSameFileAllComplete) {
  const io::FileId id = opened("a", OpenMode::append);
  std::deque<WaitOp> appends, syncs;
  const ConstBuf text = bytes_of("text");
  const io::BarrierFile file{id};
  for (int i = 0; i < 10; ++i) {
    disk().append(appends.emplace_back(), id, {&text, 1});
    disk().barrier(syncs.emplace_back(), {&file, 1});
  }
  for (WaitOp& op : syncs) {
    ASSERT_TRUE(world().run_until([&] { return !op.in_flight; }));
    EXPECT_EQ(op.error.code, Errc::ok);
  }
}

TEST_P(DiskPorts, ABarrierOverManyFilesCompletesOnce) {
  std::vector<io::BarrierFile> files;
  std::deque<WaitOp> appends;
  const ConstBuf text = bytes_of("text");
  for (int i = 0; i < 40; ++i) {
    files.push_back({opened("f" + std::to_string(i), OpenMode::append)});
    disk().append(appends.emplace_back(), files.back().file, {&text, 1});
  }
  EXPECT_EQ(barrier(files), Errc::ok);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(content("f" + std::to_string(i)), "text");
}

TEST_P(DiskPorts, ABarrierOverNothingSucceeds) { EXPECT_EQ(barrier({}), Errc::ok); }

// ---- names

TEST_P(DiskPorts, RenameReplacesTheTarget) {
  write_file("from", "new");
  write_file("to", "old");
  WaitOp op;
  disk().rename(op, path("from"), path("to"));
  EXPECT_EQ(wait(op).error.code, Errc::ok);
  EXPECT_EQ(content("to"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"to"});
}

TEST_P(DiskPorts, RenameOfNothingIsNotFound) {
  WaitOp op;
  disk().rename(op, path("from"), path("to"));
  EXPECT_EQ(wait(op).error.code, Errc::not_found);
}

TEST_P(DiskPorts, AHandleStaysGoodWhenItsFileIsRenamedOrUnlinked) {
  write_file("file", "content");
  const io::FileId id = opened("file", OpenMode::read);
  WaitOp rename, unlink;
  disk().rename(rename, path("file"), path("other"));
  wait(rename);
  disk().unlink(unlink, path("other"));
  wait(unlink);
  std::string into(7, '?');
  WaitOp read;
  disk().read(read, id, 0, std::as_writable_bytes(std::span(into)));
  EXPECT_EQ(wait(read).error.code, Errc::ok);
  EXPECT_EQ(into, "content");
}

TEST_P(DiskPorts, UnlinkRemovesAFileOnce) {
  write_file("file", "x");
  WaitOp first, second;
  disk().unlink(first, path("file"));
  EXPECT_EQ(wait(first).error.code, Errc::ok);
  disk().unlink(second, path("file"));
  EXPECT_EQ(wait(second).error.code, Errc::not_found);
  EXPECT_TRUE(names().empty());
}

TEST_P(DiskPorts, MakeDirIsContentWithADirectoryThatExists) {
  WaitOp first, second, third;
  disk().make_dir(first, path("dir"));
  EXPECT_EQ(wait(first).error.code, Errc::ok);
  disk().make_dir(second, path("dir"));
  EXPECT_EQ(wait(second).error.code, Errc::ok);
  disk().make_dir(third, path("no/dir"));
  EXPECT_EQ(wait(third).error.code, Errc::not_found);
}

TEST_P(DiskPorts, MakeDirOverAFileFails) {
  write_file("file", "x");
  WaitOp op;
  disk().make_dir(op, path("file"));
  EXPECT_EQ(wait(op).error.code, Errc::exists);
}

TEST_P(DiskPorts, RemoveDirWantsAnEmptyDirectory) {
  WaitOp make, early, unlink, late, again;
  disk().make_dir(make, path("dir"));
  wait(make);
  write_file("dir/file", "x");
  disk().remove_dir(early, path("dir"));
  EXPECT_EQ(wait(early).error.code, Errc::exists);
  disk().unlink(unlink, path("dir/file"));
  wait(unlink);
  disk().remove_dir(late, path("dir"));
  EXPECT_EQ(wait(late).error.code, Errc::ok);
  disk().remove_dir(again, path("dir"));
  EXPECT_EQ(wait(again).error.code, Errc::not_found);
}

TEST_P(DiskPorts, ListIsSortedByBytesAndKnowsKindsAndSizes) {
  WaitOp make, list;
  disk().make_dir(make, path("dir"));
  wait(make);
  for (const char* name : {"b", "a", "B", "10", "9", ".hidden"}) write_file(name, name);
  std::vector<io::DirEntry> entries;
  disk().list(list, world().root(), entries);
  EXPECT_EQ(wait(list).error.code, Errc::ok);
  std::vector<std::string> found;
  for (const io::DirEntry& entry : entries) found.push_back(entry.name);
  EXPECT_EQ(found, (std::vector<std::string>{".hidden", "10", "9", "B", "a", "b", "dir"}));
  EXPECT_EQ(entries[1].kind, io::FileKind::file);
  EXPECT_EQ(entries[1].bytes, 2u);
  EXPECT_EQ(entries[6].kind, io::FileKind::directory);
  EXPECT_EQ(entries[6].bytes, 0u);
}

TEST_P(DiskPorts, ListOfNothingIsNotFound) {
  std::vector<io::DirEntry> entries;
  WaitOp op;
  disk().list(op, path("none"), entries);
  EXPECT_EQ(wait(op).error.code, Errc::not_found);
}

TEST_P(DiskPorts, ASymlinkIsListedAsOneAndFollowedOnlyOnRequest) {
  write_file("file", "1234567");
  if (!world().make_symlink("file", path("link"))) return;  // this world has none
  std::vector<io::DirEntry> entries;
  WaitOp list;
  disk().list(list, world().root(), entries);
  wait(list);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].kind, io::FileKind::symlink);
  EXPECT_EQ(entries[1].bytes, 0u);
  io::Stat facts;
  EXPECT_EQ(stat("link", facts, false), Errc::ok);
  EXPECT_EQ(facts.kind, io::FileKind::symlink);
  EXPECT_EQ(stat("link", facts, true), Errc::ok);
  EXPECT_EQ(facts.kind, io::FileKind::file);
  EXPECT_EQ(facts.bytes, 7u);
}

TEST_P(DiskPorts, StatTellsKindAndSize) {
  write_file("file", "1234");
  io::Stat facts;
  EXPECT_EQ(stat("file", facts), Errc::ok);
  EXPECT_EQ(facts.kind, io::FileKind::file);
  EXPECT_EQ(facts.bytes, 4u);
  EXPECT_EQ(stat("none", facts), Errc::not_found);
  WaitOp op;
  disk().stat(op, world().root(), true, facts);
  wait(op);
  EXPECT_EQ(facts.kind, io::FileKind::directory);
}

TEST_P(DiskPorts, SyncDirWantsADirectory) {
  WaitOp good, bad;
  disk().sync_dir(good, world().root());
  EXPECT_EQ(wait(good).error.code, Errc::ok);
  disk().sync_dir(bad, path("none"));
  EXPECT_EQ(wait(bad).error.code, Errc::not_found);
}

TEST_P(DiskPorts, UsageKnowsTheVolume) {
  io::DiskUsage usage;
  WaitOp op;
  disk().usage(op, world().root(), usage);
  EXPECT_EQ(wait(op).error.code, Errc::ok);
  EXPECT_GT(usage.total, 0u);
  EXPECT_LE(usage.available, usage.total);
}

// ---- locks and stale handles

TEST_P(DiskPorts, ALockHasOneHolderUntilItIsClosed) {
  WaitOp first, second, third;
  disk().lock(first, path("lock"), io::LockKind::exclusive);
  EXPECT_EQ(wait(first).error.code, Errc::ok);
  disk().lock(second, path("lock"), io::LockKind::exclusive);
  EXPECT_EQ(wait(second).error.code, Errc::locked);
  EXPECT_EQ(close(first.file()), Errc::ok);
  disk().lock(third, path("lock"), io::LockKind::exclusive);
  EXPECT_EQ(wait(third).error.code, Errc::ok);
}

TEST_P(DiskPorts, ASharedLockHasAnyNumberOfHoldersAndExcludesTheOther) {
  WaitOp missing, first, second, refused, exclusive, late;
  disk().lock(missing, path("lock"), io::LockKind::shared);
  EXPECT_EQ(wait(missing).error.code, Errc::not_found) << "nothing is created";
  write_file("lock", "123\n");
  disk().lock(first, path("lock"), io::LockKind::shared);
  EXPECT_EQ(wait(first).error.code, Errc::ok);
  disk().lock(second, path("lock"), io::LockKind::shared);
  EXPECT_EQ(wait(second).error.code, Errc::ok);
  EXPECT_EQ(close(first.file()), Errc::ok);
  disk().lock(refused, path("lock"), io::LockKind::exclusive);
  EXPECT_EQ(wait(refused).error.code, Errc::locked) << "one is left";
  EXPECT_EQ(close(second.file()), Errc::ok);
  disk().lock(exclusive, path("lock"), io::LockKind::exclusive);
  EXPECT_EQ(wait(exclusive).error.code, Errc::ok);
  disk().lock(late, path("lock"), io::LockKind::shared);
  EXPECT_EQ(wait(late).error.code, Errc::locked);
  EXPECT_EQ(content("lock"), "123\n");
}

TEST_P(DiskPorts, ALockHandleRewritesAndTruncates) {
  WaitOp lock, rewrite, cut;
  disk().lock(lock, path("lock"), io::LockKind::exclusive);
  wait(lock);
  disk().rewrite(rewrite, lock.file(), 0, bytes_of("123\n"));
  EXPECT_EQ(wait(rewrite).error.code, Errc::ok);
  disk().truncate(cut, lock.file(), 2);
  EXPECT_EQ(wait(cut).error.code, Errc::ok);
  EXPECT_EQ(content("lock"), "12");
}

TEST_P(DiskPorts, AClosedHandleIsStaleForEveryCall) {
  write_file("file", "0123456789");
  const io::FileId id = opened("file", OpenMode::rewrite);
  EXPECT_EQ(close(id), Errc::ok);
  EXPECT_EQ(append(id, "x"), Errc::cancelled);
  EXPECT_EQ(barrier({{id}}), Errc::cancelled);
  EXPECT_EQ(close(id), Errc::cancelled);
  std::string into(4, '?');
  WaitOp read, rewrite, cut;
  disk().read(read, id, 0, std::as_writable_bytes(std::span(into)));
  EXPECT_EQ(wait(read).error.code, Errc::cancelled);
  disk().rewrite(rewrite, id, 0, bytes_of("x"));
  EXPECT_EQ(wait(rewrite).error.code, Errc::cancelled);
  disk().truncate(cut, id, 0);
  EXPECT_EQ(wait(cut).error.code, Errc::cancelled);
  EXPECT_EQ(content("file"), "0123456789");
}

TEST_P(DiskPorts, AHandleIsNeverUsedForAnotherFile) {
  write_file("a", "a");
  write_file("b", "b");
  const io::FileId a = opened("a", OpenMode::append);
  EXPECT_EQ(close(a), Errc::ok);
  const io::FileId b = opened("b", OpenMode::append);
  EXPECT_NE(a, b);
  EXPECT_EQ(append(a, "x"), Errc::cancelled);
  EXPECT_EQ(content("b"), "b");
}

}  // namespace
}  // namespace rq::test
