#pragma once
// The layout of compiled.sdx, for compiled_model.cc and compiled_writer.cc.
//
// Head | meta | small constants || large blocks, each at a multiple of 4096. The head's checksum covers everything before `||`.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/system/mapped_file.h"
#include "graph/byte_stream.h"

namespace sdx::compiled {

inline constexpr char kFile[] = "compiled.sdx";
inline constexpr char kSealed[] = ".sealed";
inline constexpr char kLock[] = ".lock";
inline constexpr char kMagic[8] = {'S', 'D', 'X', 'M', 'O', 'D', 'E', 'L'};
inline constexpr std::uint32_t kFormat = 2;
inline constexpr std::uint32_t kOrder = 0x01020304;  // in this machine's byte order
inline constexpr std::uint64_t kSmall = 16384;       // bytes: constants below lie in the checked part
inline constexpr std::uint64_t kAlign = 64, kPage = 4096;
// Kernels stamp files with a clock that ticks every 1 to 10 ms; two changes between ticks look like one.
inline constexpr std::int64_t kTick = 20'000'000;  // ns

struct Head {
  char magic[8];
  std::uint32_t format, order;
  std::uint64_t file_bytes, checked_bytes, meta_bytes;
  std::uint64_t hash_low, hash_high;  // of all checked bytes, with zeros in place of these two
  std::uint64_t reserved;
};
static_assert(sizeof(Head) == 64);

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 hash_head(const void* head, const void* rest, std::size_t bytes);
std::uint64_t hash_block(const void* data, std::size_t bytes);

enum class Kind : std::uint8_t { block, source, text };

// Nanoseconds since 1970 by the clock of file times.
std::int64_t clock_ns();

void write_spec(ByteWriter& out, const ValueSpec& spec);
ValueSpec read_spec(ByteReader& in);

// Names packed weights in the file: the key, and the numbers of their sources' storages.
inline constexpr std::uint64_t kUnknown = UINT64_MAX, kLeftOut = UINT64_MAX - 1;
std::string pack_name(const std::string& key, const std::vector<std::uint64_t>& storages);

// Removes files of killed writers. The caller holds the folder's lock.
void remove_leftovers(const std::filesystem::path& folder) noexcept;

// "checked" lines of .sealed.
std::string stamp_line(const std::filesystem::path& path, const FileStamp& stamp);

}  // namespace sdx::compiled
