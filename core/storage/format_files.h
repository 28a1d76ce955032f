// FORMAT, COMPATIBILITY and broker.meta (page 20 section 2), and the content of the lock file (D-41).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "core/base/bytes.h"
#include "core/storage/types.h"

namespace rq::storage {

// What is wrong with the content of a small file; the caller knows which file.
template <class T>
using Decoded = tl::expected<T, std::string>;

inline constexpr std::uint64_t kFormatBytesMax = 65'536;  // FORMAT and COMPATIBILITY, on read
inline constexpr std::uint32_t kFeatureLevelMin = 1;
inline constexpr std::uint32_t kFeatureLevelMax = 2;

std::string encode_format();                                // {"version":7}, pretty-printed
std::optional<std::string> check_format(ConstBuf content);  // null, or what is wrong

struct Compatibility {
  std::uint32_t active_writer_level = 1;
  std::uint32_t minimum_reader_level = 1;
  std::uint64_t generation = 1;
  bool operator==(const Compatibility&) const = default;
};
std::string encode_compatibility(const Compatibility& compatibility);
Decoded<Compatibility> decode_compatibility(ConstBuf content);
// The fence against readers that are too old, and the configured level (page 20 section 2.3 steps 1 and 4 to 6).
std::optional<std::string> check_reader_level(const Compatibility& stored);
Decoded<Compatibility> raise_level(const Compatibility& stored, std::uint32_t configured);

struct BrokerMeta {
  std::uint64_t node_id = 0;
  std::uint64_t next_sequence = 1;
  std::uint64_t registry_revision = 0;
  bool operator==(const BrokerMeta&) const = default;
};
std::string encode_broker_meta(const BrokerMeta& meta);
Decoded<BrokerMeta> decode_broker_meta(ConstBuf content);

std::string lock_content(std::int64_t pid, bool clean);  // "<pid>\n", and "clean\n" after a clean stop
bool is_clean_lock(std::string_view content);

}  // namespace rq::storage
