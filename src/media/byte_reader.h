#pragma once
// Numbers out of a file's bytes, checked.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace sdx::media {

class ByteReader {
 public:
  // `what` names the format in errors, e.g. "BMP".
  ByteReader(std::span<const std::byte> bytes, std::string_view what, bool big_endian = false)
      : bytes_(bytes), what_(what), big_(big_endian) {}

  std::size_t size() const { return bytes_.size(); }
  void set_big_endian(bool big) { big_ = big; }

  // Throw Error(invalid_argument) when the file ends before.
  std::uint32_t u8(std::uint64_t at) const { return static_cast<std::uint32_t>(part(at, 1)[0]); }
  std::uint32_t u16(std::uint64_t at) const {
    const auto p = part(at, 2);
    const auto a = static_cast<std::uint32_t>(p[0]), b = static_cast<std::uint32_t>(p[1]);
    return big_ ? a << 8 | b : b << 8 | a;
  }
  std::uint32_t u32(std::uint64_t at) const { return big_ ? u16(at) << 16 | u16(at + 2) : u16(at + 2) << 16 | u16(at); }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) damaged("it ends too early");
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
  }
  [[noreturn]] void damaged(std::string_view why) const {
    fail(ErrorCode::invalid_argument, "the {} image is damaged or of a kind that is not supported: {}", what_, why);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
  bool big_;
};

}  // namespace sdx::media
