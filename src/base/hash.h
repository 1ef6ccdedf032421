#pragma once
// A hash of contents: equal contents give equal hashes on every machine and in every version. Not against forgery.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// XXH3 with 128 bits: some 10 GB a second.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(std::span<const std::byte> bytes);
  // Adds the length, too, so that "ab", "c" and "a", "bc" differ.
  void add(std::string_view text);
  // Adds all bytes of a file. The file is read, not mapped: see read_pieces(). Throws Error(io).
  void add_file(const std::filesystem::path& path);
  // 32 hexadecimal digits.
  std::string text() const;

 private:
  void* state_;
};

// The hash of a file's bytes. Throws Error(io).
std::string hash_file(const std::filesystem::path& path);
// The hash of a text, without its length.
SDX_TOOLS_API std::string hash_text(std::string_view text);

}  // namespace sdx
