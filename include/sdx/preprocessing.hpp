#pragma once
// Settings for turning images, sound and text into tensors: used by project files, the command line and callers of
// <sdx/image.hpp>.

#include <optional>
#include <string>
#include <vector>

namespace sdx {

// Settings left open follow from the declared shape and type of the input. Plain data.
struct Preprocessing {
  enum class Fit { stretch, letterbox, letterbox_corner, crop };  // crop: cover, then cut out the middle
  enum class Filter {
    nearest,   // the pixel under the target pixel's centre
    bilinear,  // triangle
    bicubic,   // Keys, a = -0.5
    area,      // mean over the target pixel's exact footprint
  };
  enum class Layout { nchw, nhwc, chw, hwc, hw };  // hw only for grey
  enum class Color { rgb, bgr, gray };

  int width = 0, height = 0;            // pixels; 0: as the input declares, else the picture's own size
  int shorter_side = 0;                 // instead of width and height: the shorter side's new length, proportions kept
  int crop_width = 0, crop_height = 0;  // then crop the centre; 0: no crop
  Fit fit = Fit::stretch;
  Filter filter = Filter::bilinear;
  int fill = 114;                // letterbox value, 0 to 255: the grey used to train YOLO models
  std::optional<Layout> layout;  // no value: the axis of extent 1 or 3 is colour; nchw if the input declares none
  std::optional<Color> color;    // no value: gray for inputs of one channel, rgb for others
  // value = (pixel * scale - mean) / deviation. `normalize` names a common choice; the others replace its parts. Lists have one
  // number, or one for each channel in the order of `color`. By default, floats range from 0 to 1, integers from 0 to
  // 255.
  //   "none": 0 to 255; "0-1" (or "unit"); "-1-1" (or "signed"); "custom": only the parts below;
  //   "imagenet": 0 to 1, then mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225, red first; "clip": the means of CLIP models
  std::string normalize{};
  std::optional<float> scale;
  std::vector<float> mean{}, deviation{};
  int sample_rate = 0;      // samples per second of sound; 0: as it comes
  std::string tokenizer{};  // file or name
  int max_length = 0;       // maximum number of tokens; 0: unlimited
};

}  // namespace sdx
