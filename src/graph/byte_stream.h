#pragma once
// Numbers and texts in a row, for files that only this build of the program reads again.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace sdx {

class ByteWriter {
 public:
  // 7 bits a byte, the lowest first; signed numbers keep their sign in the lowest bit.
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_enum_v<T>) {
      number(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_signed_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      put((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
    } else {
      put(static_cast<std::uint64_t>(value));
    }
  }
  void text(std::string_view value) {
    put(value.size());
    bytes_.append(value);
  }
  template <class T>
  void raw(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void put(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_ += static_cast<char>(v | 0x80);
    bytes_ += static_cast<char>(v);
  }
  std::string bytes_;
};

// Every getter throws Error(invalid_model) instead of reading beyond the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(number<std::underlying_type_t<T>>());
    } else if constexpr (std::is_signed_v<T>) {
      const std::uint64_t v = get();
      const auto wide = static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
      if (static_cast<std::int64_t>(static_cast<T>(wide)) != wide) damaged();
      return static_cast<T>(wide);
    } else {
      const std::uint64_t v = get();
      if (static_cast<std::uint64_t>(static_cast<T>(v)) != v) damaged();
      return static_cast<T>(v);
    }
  }
  // Reads the number of items that follow, each of at least one byte, so that memory for them may be reserved.
  std::size_t count() {
    const std::uint64_t n = get();
    if (n > bytes_.size()) damaged();
    return static_cast<std::size_t>(n);
  }
  std::string_view view() {
    const std::size_t n = count();
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }
  std::string text() { return std::string(view()); }
  template <class T>
  T raw() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (bytes_.size() < sizeof(T)) damaged();
    bytes_.copy(reinterpret_cast<char*>(&value), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  bool at_end() const { return bytes_.empty(); }
  [[noreturn]] static void damaged() { fail(ErrorCode::invalid_model, "the bytes are damaged"); }

 private:
  std::uint64_t get() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) damaged();
      const auto b = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      v |= static_cast<std::uint64_t>(b & 0x7F) << shift;
      if (b < 0x80) return v;
    }
    damaged();
  }
  std::string_view bytes_;
};

}  // namespace sdx
