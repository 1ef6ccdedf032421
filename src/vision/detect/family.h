#pragma once
// The known detector models: their inputs and outputs, and how a model is recognised by its outputs.

#include <array>
#include <optional>
#include <sdx/session.hpp>
#include <span>
#include <string>
#include <string_view>

namespace sdx::vision {

enum class Family { yunet, yunet2022, scrfd, retinaface, ultraface, centerface, blazeface };

// A model's input: value = (pixel - mean) * scale. The picture is in the upper left corner; beside and below it, pixels are
// 0.
struct InputRule {
  bool bgr = false;
  std::array<float, 3> mean{0, 0, 0};  // in the order of the channels
  float scale = 1;
  int multiple = 32;          // extents are rounded up to it, where the model leaves them open
  int width = 0, height = 0;  // of models that leave their extents open and are made for one size alone; 0: for any
  bool squash = false;        // the whole picture fills the input, whatever its proportions
};

// The criterion by which two boxes count as one face.
enum class Overlap {
  truncated,  // boxes cut to whole pixels (OpenCV)
  plain,      // continuous boxes
  plus_one,   // sides are counted as last - first + 1 pixels
  or_equal,   // as plain, and an overlap just as large as the limit is too much
  weighted,   // as plain; the face is the average of all boxes that are one, weighted by their scores
};

struct FamilyTraits {
  Family family;
  std::string_view name;
  InputRule input = {};
  float nms = 0.3F;
  Overlap overlap = Overlap::plain;
  bool close_ups_need_small_looks = false;  // faces of over about 300 pixels are missed or found in parts
  bool any_extents = false;                 // nothing in the graph depends on the extents that the file declares
  double smallest_face = 10;                // pixels of the input: smaller ones are mostly missed
  std::string_view outputs;                 // for messages
};

std::span<const FamilyTraits> families();
const FamilyTraits& traits(Family family);
// Throws Error(invalid_argument) with the names.
const FamilyTraits& family_named(std::string_view name);

// The family whose outputs these are, by their names where they tell, else by their number and last extents. Extents that
// count cells are not looked at: files declare wrong ones.
std::optional<Family> recognise(std::span<const ValueSpec> outputs);

// The only input that must be given, when it can take a picture: a tensor of floats with three channels. Throws
// Error(invalid_argument) that says what the model has instead.
const ValueSpec& picture_input(std::span<const ValueSpec> inputs);

// "name: type" in lines of their own.
std::string listed(std::span<const ValueSpec> specs);
// "yunet (cls_8, …), scrfd (…), …"
std::string known_families();

}  // namespace sdx::vision
