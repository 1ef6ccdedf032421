#pragma once
// Finding one's way in a detector's outputs; internal to the decoders.

#include <vector>

#include "vision/detect/decode.h"

namespace sdx::vision {

// The output of that name; null if there is none.
const Output* find_output(std::span<const Output> outputs, std::string_view name);

// Outputs with this last extent: the largest first, otherwise in the model's order.
std::vector<const Output*> with_last_extent(std::span<const Output> outputs, std::int64_t extent);

// Throws Error(runtime_failure) that says what the decoder needs and lists the outputs.
[[noreturn]] void fail_outputs(std::span<const Output> outputs, std::string_view what);

// The cells of a map with this stride; `output` has `values` for each. Sides that are no multiple of the stride are rounded up or
// down, whichever gives the number of elements. Throws like fail_outputs().
struct Grid {
  std::int64_t columns = 0, rows = 0;
  std::int64_t cells() const { return columns * rows; }
};
Grid grid_of(std::span<const Output> outputs, const Output& output, InputSize input, int stride, std::int64_t values);

// Throws as fail_outputs() unless `output` has `values` for each cell.
void require_cells(std::span<const Output> outputs, const Output& output, const Grid& grid, std::int64_t values);

// Adds the face unless one of its numbers is not finite, or farther out than any picture is large.
void add_if_sane(std::vector<faces::Face>& faces, const faces::Face& face);

// right eye, left eye, nose, right and left corner of the mouth.
faces::Points five_points(const std::array<faces::Point, 5>& points);

inline float unit(float v) { return v < 0 ? 0.0F : v > 1 ? 1.0F : v; }  // NaN stays

// decode() for models whose boxes are relative to cells …
std::vector<faces::Face> decode_yunet(std::span<const Output> outputs, InputSize input, float score);
std::vector<faces::Face> decode_scrfd(std::span<const Output> outputs, InputSize input, float score);
std::vector<faces::Face> decode_centerface(std::span<const Output> outputs, InputSize input, float score);
// … and for those whose boxes are relative to a list of boxes, or to the whole input.
std::vector<faces::Face> decode_yunet2022(std::span<const Output> outputs, InputSize input, float score);
std::vector<faces::Face> decode_retinaface(std::span<const Output> outputs, InputSize input, float score);
std::vector<faces::Face> decode_ultraface(std::span<const Output> outputs, InputSize input, float score);
std::vector<faces::Face> decode_blazeface(std::span<const Output> outputs, InputSize input, float score);

}  // namespace sdx::vision
