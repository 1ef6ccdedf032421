#pragma once
// From an image to a model's input tensor.

#include <array>
#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

#include "media/image.h"
#include "media/resize.h"

namespace sdx::media {

enum class Fit { stretch, letterbox, letterbox_corner, crop };  // crop: cover, then cut out the middle
enum class Layout { nchw, nhwc, chw, hwc, hw };                 // hw only for grey
enum class Color { rgb, bgr, gray };

struct Preprocess {
  int width = 0;  // 0: as the image
  int height = 0;
  Fit fit = Fit::stretch;
  Filter filter = Filter::bilinear;
  std::uint8_t fill = 114;  // of letterboxes: the grey that YOLO models are trained with
  Layout layout = Layout::nchw;
  Color color = Color::rgb;
  // value = (pixel * scale - mean) / deviation, channel by channel in the order of `color`
  float scale = 1.0F;
  std::vector<float> mean;       // one for all channels or one each; empty: 0
  std::vector<float> deviation;  // the same; empty: 1
  DataType dtype = DataType::float32;
};

// Sets scale, mean and deviation: "imagenet" (0..1, then mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, red first),
// "clip" (the means of CLIP models), "0-1" or "unit", "-1-1" or "signed", "none" (0..255). Throws
// Error(invalid_argument) with the list of names. `color` must be set before.
void set_normalization(Preprocess& p, std::string_view name);
Fit parse_fit(std::string_view text);        // "stretch", "letterbox", "letterbox-corner", "crop"
Filter parse_filter(std::string_view text);  // "nearest", "bilinear", "bicubic", "area"
Layout parse_layout(std::string_view text);  // "nchw", "nhwc", "chw", "hwc", "hw"
Color parse_color(std::string_view text);    // "rgb", "bgr", "gray"

// The tensor, of shape [1,C,H,W], [1,H,W,C], [C,H,W], [H,W,C] or [H,W]. Element types: float32, float16, float64 and all
// integers of 8 bits and more (rounded to nearest, clamped). Opacity is dropped.
Tensor to_tensor(const Image& image, const Preprocess& p, Placement* placement = nullptr);

// uint8 or float (0..255, or 0..1 with scale 255) of shape [1,]C,H,W or [1,]H,W,C back to an image, values clamped.
Image from_tensor(const Tensor& tensor, Layout layout, float scale = 1.0F);

}  // namespace sdx::media
