#pragma once
// Interprets the words of a Preprocessing, and converts tensors back to pictures.

#include <string_view>
#include <vector>

#include "base/tools_api.h"
#include "media/image.h"

namespace sdx::media {

SDX_TOOLS_API Fit parse_fit(std::string_view text);        // "stretch", "letterbox", "letterbox-corner", "crop"
SDX_TOOLS_API Filter parse_filter(std::string_view text);  // "nearest", "bilinear", "bicubic", "area"
SDX_TOOLS_API Layout parse_layout(std::string_view text);  // "nchw", "nhwc", "chw", "hwc", "hw"
SDX_TOOLS_API Color parse_color(std::string_view text);    // "rgb", "bgr", "gray"; "grey"

// value = (pixel * scale - mean) / deviation, channel by channel in the order of the colour.
struct Normalization {
  float scale = 1;
  std::vector<float> mean;       // one for all channels or one each; empty: 0
  std::vector<float> deviation;  // the same; empty: 1
};
// See Preprocessing::normalize. Throws Error(invalid_argument) with the list of names for another one than these.
SDX_TOOLS_API Normalization normalization(std::string_view name, Color color);

// Whether floats are scaled to 0..1 by default, without a setting.
SDX_TOOLS_API bool scales_unasked(const Preprocessing& p, const ValueSpec* input);

}  // namespace sdx::media
