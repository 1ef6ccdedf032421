#pragma once
// Divides counts into whole parts.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sdx::cpu {

inline std::size_t to_size(std::int64_t count) { return static_cast<std::size_t>(count); }

inline std::int64_t up_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// Rounds towards minus infinity.
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -up_div(-a, b); }
inline std::int64_t round_up(std::int64_t value, std::int64_t unit) { return up_div(value, unit) * unit; }

// Equal cuts of [0, total) into parts of at most `most`.
struct Cuts {
  std::int64_t total = 0;
  std::int64_t parts = 0;
  Cuts(std::int64_t total_in, std::int64_t most) : total(total_in), parts(up_div(total_in, most)) {
    if (parts <= 0) return;
    base_ = total / parts;
    longer_ = total % parts;
  }
  std::int64_t begin(std::int64_t i) const { return i * base_ + std::min(i, longer_); }
  std::int64_t size(std::int64_t i) const { return base_ + (i < longer_ ? 1 : 0); }

 private:
  std::int64_t base_ = 0;
  std::int64_t longer_ = 0;  // the first parts have one element more
};

}  // namespace sdx::cpu
