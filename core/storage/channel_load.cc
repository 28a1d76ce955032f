#include "core/storage/channel_load.h"

#include "core/base/hex.h"
#include "core/storage/checkpoint.h"
#include "core/storage/frame.h"
#include "core/storage/names.h"
#include "core/storage/replay.h"
#include "core/storage/script.h"
#include "core/storage/wal.h"

namespace rq::storage {
namespace {

// The longest valid frame has 12 + 35 bytes. Past the last command that is accepted one whole frame of the largest length must
// fit, so that a frame which looks torn in a file that was cut here really is.
constexpr std::uint64_t kWalFrameBytesMax = kFrameHeaderBytes + 35;
constexpr std::uint64_t kWalReadBytes = kWalFrameBytesMax * kWalCommandsMax + kFrameHeaderBytes + kWalBodyBytesMax;

const char* wal_text(WalRead read) {
  switch (read) {
    case WalRead::bad_magic:
      return "no command starts here (wrong magic)";
    case WalRead::bad_length:
      return "command above 1 MiB, or of a damaged length: another one stands inside it";
    case WalRead::bad_crc:
      return "command checksum mismatch";
    default:
      return "command does not decode";
  }
}

}  // namespace

void ChannelLoad::begin(std::string dir, std::string stem) {
  *this = ChannelLoad();
  checkpoint_path_ = dir + "/" + stem + ".checkpoint";
  wal_path_ = dir + "/" + stem + ".wal";
  stem_ = std::move(stem);
}

bool ChannelLoad::fail(const std::string& path, std::optional<std::uint64_t> offset, std::string what) {
  fault_ = Fault{path, offset, std::move(what)};
  return true;
}

bool ChannelLoad::poll(DiskCall call) {
  if (state_ == State::start) {
    state_ = State::checkpoint;
    file_.begin(checkpoint_path_, kCheckpointBodyBytesMax + kFrameHeaderBytes);
  }
  if (!file_.poll(call)) return false;
  const std::string& path = state_ == State::checkpoint ? checkpoint_path_ : wal_path_;
  unreadable_ = file_.result() == FileRead::Result::failed;
  if (unreadable_) return fail(path, std::nullopt, describe(file_.error()));
  if (state_ == State::wal) return replay();
  if (take_checkpoint()) return true;
  state_ = State::wal;
  file_.begin(wal_path_, kWalReadBytes, true);
  return file_.poll(call) && replay();
}

// True when that is the end of it.
bool ChannelLoad::take_checkpoint() {
  if (file_.result() == FileRead::Result::too_large) return fail(checkpoint_path_, std::nullopt, "checkpoint above 64 MiB");
  if (file_.result() == FileRead::Result::missing) return fail(checkpoint_path_, std::nullopt, "checkpoint vanished");
  Decoded<Checkpoint> checkpoint = decode_checkpoint(bytes_of(file_.content()));
  if (!checkpoint) return fail(checkpoint_path_, std::nullopt, "checkpoint: " + checkpoint.error());
  if (to_hex(checkpoint->channel.name) != stem_)
    return fail(checkpoint_path_, std::nullopt, "checkpoint names another Channel than its file");
  found_.image = std::move(checkpoint->channel);
  // The name decides as well: its lane would go with the last consumer, and files have no place in that.
  found_.ephemeral = checkpoint->ephemeral || ephemeral_name(found_.image.name);
  return found_.ephemeral;
}

bool ChannelLoad::replay() {
  if (file_.result() == FileRead::Result::missing) {
    found_.wal_missing = true;
    return true;
  }
  ConstBuf rest = bytes_of(file_.content());
  ChannelImage& image = found_.image;
  for (;;) {
    WalCommand command;
    std::uint32_t consumed = 0;
    const WalRead read = read_wal_frame(rest, command, consumed);
    if (read == WalRead::end) return true;
    if (read == WalRead::torn) {
      found_.wal_torn = true;
      return true;
    }
    if (read != WalRead::command) return fail(wal_path_, image.wal_bytes, wal_text(read));
    if (image.wal_commands == kWalCommandsMax) return fail(wal_path_, image.wal_bytes, "more than 16384 commands");
    apply(image, command);
    ++image.wal_commands;
    image.wal_bytes += consumed;
    rest = rest.subspan(consumed);
  }
}

}  // namespace rq::storage
