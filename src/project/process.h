#pragma once
// A project's checks of inputs, and its postprocessing sections. Pictures and sound: media/model_input.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/project.hpp>
#include <sdx/session.hpp>

#include "base/tools_api.h"

namespace sdx::project {

// Checks given inputs against the project file: required ones must be there, and none may be longer than its max_length. Throws
// Error(invalid_argument).
SDX_TOOLS_API void check_inputs(const ProjectConfig& config, const std::vector<ValueSpec>& specs, const NamedValues& given);

// The project's settings for an input of its model. If a file names its only input differently than the model does, that input is
// meant.
SDX_TOOLS_API const Preprocessing& preprocessing_of(const ProjectConfig& config, std::string_view input);

// The axis of classes of a tensor with these extents (-1: open): `axis`, negative ones counted from the end; -1 where the last
// extents are 1 is the last axis that has more ([1, 1000, 1, 1]: 1). Throws Error(invalid_argument) for an axis that is not
// there.
SDX_TOOLS_API std::size_t class_axis(const Shape& shape, int axis);

// Softmax or sigmoid (p.activation) along p.axis, in the scores' own type; the scores themselves without one. Throws
// Error(invalid_argument) for anything but floating-point numbers and for an axis that is not there.
SDX_TOOLS_API Tensor activated(const Tensor& scores, const Postprocessing& p);

struct RankedClass {
  std::int64_t row = 0;    // of the sample, where there are several: the index over all axes but that of the classes
  std::int64_t index = 0;  // of the class
  double score = 0;
  std::string label;  // "" where there is none
};

// The best p.top_k classes (default 5) of each row, best first, ties by index, NaN last and never above a threshold; only those
// with at least p.threshold. `scores` are activated already. Throws Error(invalid_argument) for text and for an axis that is not
// there.
SDX_TOOLS_API std::vector<RankedClass> ranked(const Tensor& scores, const Postprocessing& p);

}  // namespace sdx::project
