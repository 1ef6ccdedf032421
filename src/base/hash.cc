#include "base/hash.h"

#include <fmt/format.h>

#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/system/mapped_file.h"

namespace sdx {

ContentHash::ContentHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}

ContentHash::~ContentHash() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

void ContentHash::add(std::string_view text) {
  const std::uint64_t size = text.size();
  add(std::as_bytes(std::span(&size, 1)));
  add(std::as_bytes(std::span(text.data(), text.size())));
}

void ContentHash::add_file(const std::filesystem::path& path) {
  read_pieces(path, [this](std::span<const std::byte> piece) { add(piece); });
}

std::string ContentHash::text() const {
  const XXH128_hash_t h = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string hash_file(const std::filesystem::path& path) {
  ContentHash hash;
  hash.add_file(path);
  return hash.text();
}

std::string hash_text(std::string_view text) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text.data(), text.size())));
  return hash.text();
}

}  // namespace sdx
