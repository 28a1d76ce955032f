// WAL images: commands that are accepted are encoded to the same bytes, and replaying them twice changes only what may change.
#include <cstdlib>
#include <string>

#include "core/storage/checkpoint.h"
#include "core/storage/replay.h"
#include "core/storage/wal.h"

using namespace rq;
using namespace rq::storage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ChannelImage channel;
  channel.name = "c";
  std::vector<WalCommand> commands;
  const auto take = [&](ConstBuf rest) {
    for (;;) {
      WalCommand command;
      std::uint32_t consumed = 0;
      if (read_wal_frame(rest, command, consumed) != WalRead::command) return;
      if (consumed == 0 || consumed > rest.size()) std::abort();
      std::string again;
      put_wal_frame(again, command);
      if (again != text_of(rest.first(consumed))) std::abort();
      commands.push_back(command);
      rest = rest.subspan(consumed);
    }
  };
  const ConstBuf input = std::as_bytes(std::span(data, size));
  take(input);
  // The input as frame bodies: a length byte, then the body.
  std::string framed;
  for (ConstBuf rest = input; rest.size() > 1;) {
    const std::size_t bytes = std::min<std::size_t>(static_cast<std::uint8_t>(rest[0]) % 40, rest.size() - 1);
    put_frame(framed, "RCW7", rest.subspan(1, bytes));
    rest = rest.subspan(1 + bytes);
  }
  take(bytes_of(framed));
  for (const WalCommand& command : commands) apply(channel, command);
  const std::uint64_t requeues = channel.requeue_count;
  ChannelImage twice = channel;
  for (const WalCommand& command : commands) apply(twice, command);
  if (twice.requeue_count < requeues) std::abort();
  if (twice.ack_floor != channel.ack_floor || twice.acknowledged != channel.acknowledged) std::abort();
  return 0;
}
