#pragma once
// Boxes as detectors give them: any floats.

#include <sdx/faces.hpp>

namespace sdx::vision {

// Clamped to `low` and `high`; NaN gives `low`.
int to_int(double value, int low, int high) noexcept;

// The numbers are finite and the box has an area.
bool has_area(const faces::Box& box) noexcept;
// Throws Error(invalid_argument) unless it has.
void check_box(const faces::Box& box);

// Whole pixels, inside a picture: [left, right) x [top, bottom).
struct Pixels {
  int left = 0, top = 0, right = 0, bottom = 0;
  bool empty() const { return right <= left || bottom <= top; }
};
// The pixels that the box touches.
Pixels pixels_of(const faces::Box& box, int width, int height);

}  // namespace sdx::vision
