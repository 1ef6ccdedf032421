#pragma once
// Pictures in the sizes that detectors look at.

#include <sdx/image.hpp>
#include <sdx/tensor.hpp>

#include "vision/detect/family.h"

namespace sdx::vision {

// Three channels, red first; grey is copied to all, opacity dropped. Smaller: each pixel is the mean of the area that it covers.
// Larger in either direction: bilinear.
media::Image scaled(const media::Image& picture, int width, int height);

// Like scaled(), but from the four nearest pixels unless the picture is over four times as large: models that see the whole
// picture squashed were trained with that.
media::Image squashed(const media::Image& picture, int width, int height);

// Clockwise, by 90, 180 or 270 degrees.
media::Image turned(const media::Image& picture, int degrees);

struct InputForm {
  DataType dtype = DataType::float32;  // or float16
  bool channels_last = false;
};

// [1,3,height,width] or, channels last, [1,height,width,3], by the rule. The picture, which must not be larger and have three
// channels, lies in the upper left corner.
Tensor input_of(const media::Image& picture, const InputRule& rule, int width, int height, const InputForm& form = {});

}  // namespace sdx::vision
