#pragma once
// Ellipses around faces.

#include <cmath>
#include <vector>

#include <sdx/faces.hpp>

#include "vision/box.h"

namespace sdx::vision {

// Around the middle of a box; `across` and `down` times as large as the one that the box just contains.
class Ellipse {
 public:
  Ellipse(const faces::Box& box, double across, double down)
      : x_(static_cast<double>(box.x) + static_cast<double>(box.width) / 2),
        y_(static_cast<double>(box.y) + static_cast<double>(box.height) / 2),
        a_(static_cast<double>(box.width) / 2 * across),
        b_(static_cast<double>(box.height) / 2 * down) {}

  // The pixels that it touches.
  Pixels pixels(int width, int height) const {
    return {to_int(std::floor(x_ - a_), 0, width), to_int(std::floor(y_ - b_), 0, height), to_int(std::ceil(x_ + a_), 0, width),
            to_int(std::ceil(y_ + b_), 0, height)};
  }
  // The distances of the centres of pixels [left, left + out.size()) of a row: 0 in the middle, 1 on the edge.
  void radii(int left, int row, std::vector<float>& out) const {
    const auto down = static_cast<float>((row + 0.5 - y_) / b_), square = down * down;
    const auto first = static_cast<float>((left + 0.5 - x_) / a_), step = static_cast<float>(1 / a_);
    for (int i = 0; i < static_cast<int>(out.size()); ++i) {
      const float across = first + step * static_cast<float>(i);
      out[static_cast<std::size_t>(i)] = std::sqrt(across * across + square);
    }
  }

 private:
  double x_, y_, a_, b_;
};

}  // namespace sdx::vision
