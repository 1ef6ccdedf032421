#include "cache/compiled_format.h"

#include <fmt/format.h>

#include <chrono>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/log.h"

namespace sdx::compiled {

Hash128 hash_head(const void* head, const void* rest, std::size_t bytes) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, head, sizeof(Head));
  XXH3_128bits_update(&state, rest, bytes);
  const XXH128_hash_t h = XXH3_128bits_digest(&state);
  return {h.low64, h.high64};
}

std::uint64_t hash_block(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void write_spec(ByteWriter& out, const ValueSpec& s) {
  out.text(s.name);
  out.text(s.type);
  out.number(static_cast<std::uint8_t>((s.is_tensor ? 1 : 0) | (s.has_shape ? 2 : 0) | (s.has_default ? 4 : 0)));
  out.number(static_cast<std::uint32_t>(s.dtype));
  out.number(s.shape.size());
  for (const std::int64_t d : s.shape) out.number(d);
  out.number(s.symbols.size());
  for (const std::string& symbol : s.symbols) out.text(symbol);
}

ValueSpec read_spec(ByteReader& in) {
  ValueSpec s;
  s.name = in.text();
  s.type = in.text();
  const auto flags = in.number<std::uint8_t>();
  s.is_tensor = (flags & 1) != 0;
  s.has_shape = (flags & 2) != 0;
  s.has_default = (flags & 4) != 0;
  const auto dtype = in.number<std::uint32_t>();
  if (dtype >= static_cast<std::uint32_t>(kDataTypeCount)) ByteReader::damaged();
  s.dtype = static_cast<DataType>(dtype);
  s.shape.resize(in.count());
  for (std::int64_t& d : s.shape) d = in.number<std::int64_t>();
  s.symbols.resize(in.count());
  for (std::string& symbol : s.symbols) symbol = in.text();
  return s;
}

std::string pack_name(const std::string& key, const std::vector<std::uint64_t>& storages) {
  ByteWriter out;
  out.text(key);
  for (const std::uint64_t s : storages) out.number(s);
  return out.take();
}

void remove_leftovers(const std::filesystem::path& folder) noexcept {
  try {
    std::vector<std::filesystem::path> left;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().filename().string().find(".tmp.") != std::string::npos) left.push_back(entry.path());
    }
    for (const std::filesystem::path& p : left) std::filesystem::remove(p);
  } catch (const std::exception& e) {
    log::debug("'{}': {}", folder.string(), e.what());
  }
}

std::string stamp_line(const std::filesystem::path& path, const FileStamp& s) {
  return fmt::format("checked {} {} {} {} {} {}\n", s.device, s.inode, s.bytes, s.modified_ns, s.changed_ns, path.string());
}

}  // namespace sdx::compiled
