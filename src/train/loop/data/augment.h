#pragma once
// Pictures changed at random, so that a model does not learn what does not matter.

#include <string_view>

#include <sdx/image.hpp>

#include "train/loop/random.h"

namespace sdx::train::loop {

struct Augmentation {
  bool flip = false;    // left and right change places, for one picture of two
  bool crop = false;    // moved by up to an eighth of each side; the edge is repeated
  bool colour = false;  // brightness, contrast and saturation by up to a fifth
  bool any() const { return flip || crop || colour; }
};

// "flip,crop,colour". Throws Error(invalid_argument) with the permitted words.
Augmentation augmentation_of(std::string_view text);

// Changes the picture in place; it has 1 or 3 channels.
void augment(media::Image& image, const Augmentation& how, Random& random);

}  // namespace sdx::train::loop
