#pragma once
// Groups that share blocks of channels (ConvShape::joined) have weights of 0 for each other's channels, and 0 times infinity is
// NaN. So the code that reads the input of such a convolution checks whether it is tame (blocked_joined_simd.h). Outputs whose
// input is not tame are left out, and computed afterwards from the input of one group at a time. Internal to this folder.

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Outputs [y0, y1) x [x0, x1) of one image, in groups that are joined.
struct LeftOutPart {
  std::int64_t image, group;
  std::int64_t y0, y1, x0, x1;
};

// Collects what all threads leave out in one run.
class LeftOut {
 public:
  void add(const LeftOutPart& part) {
    const std::lock_guard lock(mutex_);
    parts_.push_back(part);
  }
  const std::vector<LeftOutPart>& parts() const { return parts_; }

 private:
  std::mutex mutex_;
  std::vector<LeftOutPart> parts_;
};

// Computes the outputs that a convolution left out. `packed`: weights of `group_floats` for each group, followed by the bias.
struct ApartConv {
  const float* x;
  const float* packed;
  std::int64_t group_floats;
  const float* residual;
  float* y;
};

// run(shape, x, packed, residual, y): the same convolution of one image and one group.
using ApartRun = std::function<void(const ConvShape&, const float*, const float*, const float*, float*)>;
// Allocates copies of one image's channels in a group, unlike the rest of this folder, but only in this rare case.
void compute_left_out(const ConvShape& s, const LeftOut& left, const ApartConv& conv, const ApartRun& run);

}  // namespace sdx::cpu
