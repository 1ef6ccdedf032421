// What the C++ library reads text by where it makes wide text of it: std::filesystem::path of a std::string, above all. The C
// library knows no UTF-8 and would widen each byte. The linker puts this in place of its function (--wrap=mbrtowc,
// src/base/CMakeLists.txt).

#include <cstddef>
#include <cstdint>
#include <cwchar>

namespace {

constexpr wchar_t kUnknown = 0xFFFD;  // stands for bytes that are no UTF-8, as everywhere in Windows
constexpr auto kIncomplete = static_cast<std::size_t>(-2);

// The bytes of a letter by its first byte; 0: no letter begins like that.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// Whether the letter's first `count` bytes can be so: the rest of them continue it, and it is neither too long for its number,
// nor half of a pair, nor beyond Unicode.
bool is_sound(const unsigned char* bytes, std::size_t count) {
  for (std::size_t i = 1; i < count; ++i) {
    if ((bytes[i] & 0xC0) != 0x80) return false;
  }
  if (count < 2) return true;
  switch (bytes[0]) {
    case 0xE0: return bytes[1] >= 0xA0;
    case 0xED: return bytes[1] < 0xA0;
    case 0xF0: return bytes[1] >= 0x90;
    case 0xF4: return bytes[1] < 0x90;
    default: return true;
  }
}

std::uint32_t number_of(const unsigned char* bytes, std::size_t count) {
  std::uint32_t number = count == 1 ? bytes[0] : bytes[0] & (0xFFU >> (count + 1));
  for (std::size_t i = 1; i < count; ++i) number = number << 6 | (bytes[i] & 0x3FU);
  return number;
}

}  // namespace

extern "C" std::size_t __wrap_mbrtowc(wchar_t* to, const char* from, std::size_t bytes, std::mbstate_t* state);

// A letter of four bytes is two of UTF-16: three bytes give the first, and the last byte the second. `state` keeps its number
// between.
extern "C" std::size_t __wrap_mbrtowc(wchar_t* to, const char* from, std::size_t bytes, std::mbstate_t* state) {
  static thread_local std::mbstate_t own{};
  if (state == nullptr) state = &own;
  if (from == nullptr) {
    *state = 0;
    return 0;
  }
  if (bytes == 0) return kIncomplete;
  wchar_t ignored = 0;
  wchar_t& letter = to == nullptr ? ignored : *to;
  if (*state != 0) {
    letter = static_cast<wchar_t>(0xDC00 + (static_cast<std::uint32_t>(*state) & 0x3FF));
    *state = 0;
    return 1;
  }
  const auto* const at = reinterpret_cast<const unsigned char*>(from);
  const std::size_t length = length_of(at[0]), there = length < bytes ? length : bytes;
  if (length == 0 || !is_sound(at, there)) {
    letter = kUnknown;
    return 1;
  }
  if (there < length) return kIncomplete;
  const std::uint32_t number = number_of(at, length);
  if (length == 4) {
    letter = static_cast<wchar_t>(0xD800 + ((number - 0x10000) >> 10));
    *state = static_cast<std::mbstate_t>(number);
    return 3;
  }
  letter = static_cast<wchar_t>(number);
  return number == 0 ? 0 : length;
}
