#include "vision/box.h"

#include <cmath>

#include "base/error.h"

namespace sdx::vision {

int to_int(double value, int low, int high) noexcept {
  if (!(value > low)) return low;
  return value < high ? static_cast<int>(value) : high;
}

bool has_area(const faces::Box& box) noexcept {
  const bool finite = std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.width) && std::isfinite(box.height);
  return finite && box.width > 0 && box.height > 0;
}

void check_box(const faces::Box& box) {
  if (has_area(box)) return;
  fail(ErrorCode::invalid_argument, "the face's box is {} x {} pixels at ({}, {}); expected finite numbers and an area",
       box.width, box.height, box.x, box.y);
}

Pixels pixels_of(const faces::Box& box, int width, int height) {
  const double x = static_cast<double>(box.x), y = static_cast<double>(box.y);
  return {to_int(std::floor(x), 0, width), to_int(std::floor(y), 0, height),
          to_int(std::ceil(x + static_cast<double>(box.width)), 0, width),
          to_int(std::ceil(y + static_cast<double>(box.height)), 0, height)};
}

}  // namespace sdx::vision
