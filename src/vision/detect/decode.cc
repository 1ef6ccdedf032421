#include "vision/detect/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "vision/detect/outputs.h"
#include "vision/names.h"

namespace sdx::vision {

const Output* find_output(std::span<const Output> outputs, std::string_view name) {
  for (const Output& o : outputs) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

std::vector<const Output*> with_last_extent(std::span<const Output> outputs, std::int64_t extent) {
  std::vector<const Output*> found;
  for (const Output& o : outputs) {
    if (!o.shape.empty() && o.shape.back() == extent) found.push_back(&o);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Output* a, const Output* b) { return a->values.size() > b->values.size(); });
  return found;
}

void fail_outputs(std::span<const Output> outputs, std::string_view what) {
  std::string seen;
  for (const Output& o : outputs.first(std::min<std::size_t>(outputs.size(), 20))) {
    seen += fmt::format("\n    {}: {}", o.name, to_string(o.shape));
  }
  fail(ErrorCode::runtime_failure, "the detector's outputs do not fit its decoder: {}; the model gave:{}", what,
       seen.empty() ? " none" : seen);
}

Grid grid_of(std::span<const Output> outputs, const Output& output, InputSize input, int stride, std::int64_t values) {
  const auto count = static_cast<std::int64_t>(output.values.size());
  for (const int up : {stride - 1, 0}) {
    const Grid grid{(input.width + up) / stride, (input.height + up) / stride};
    if (grid.cells() * values == count) return grid;
  }
  fail_outputs(outputs,
               fmt::format("'{}' must hold {} numbers for each of {} x {} cells of {} pixels, but holds {}", output.name, values,
                           (input.width + stride - 1) / stride, (input.height + stride - 1) / stride, stride, count));
}

void require_cells(std::span<const Output> outputs, const Output& output, const Grid& grid, std::int64_t values) {
  const auto count = static_cast<std::int64_t>(output.values.size());
  if (grid.cells() * values == count) return;
  fail_outputs(outputs, fmt::format("'{}' must hold {} numbers for each of {} x {} cells, but holds {}", output.name, values,
                                    grid.columns, grid.rows, count));
}

void add_if_sane(std::vector<faces::Face>& faces, const faces::Face& face) {
  constexpr float kFar = 1e6F;                                    // pictures have at most 65535 pixels a side
  const auto sane = [](float v) { return std::abs(v) <= kFar; };  // false for NaN
  const auto point_sane = [&](const NamedPoint& named) {
    const std::optional<faces::Point>& p = face.points.*named.member;
    return !p || (sane(p->x) && sane(p->y));
  };
  const bool all = face.box.width > 0 && face.box.height > 0 && sane(face.box.x) && sane(face.box.y) && sane(face.box.width) &&
                   sane(face.box.height) && sane(face.score) && std::all_of(kPoints.begin(), kPoints.end(), point_sane);
  if (all) faces.push_back(face);
}

faces::Points five_points(const std::array<faces::Point, 5>& points) {
  faces::Points out;
  out.right_eye = points[0];
  out.left_eye = points[1];
  out.nose = points[2];
  out.right_mouth = points[3];
  out.left_mouth = points[4];
  return out;
}

std::vector<faces::Face> decode(Family family, std::span<const Output> outputs, InputSize input, float score) {
  switch (family) {
    case Family::yunet: return decode_yunet(outputs, input, score);
    case Family::yunet2022: return decode_yunet2022(outputs, input, score);
    case Family::scrfd: return decode_scrfd(outputs, input, score);
    case Family::retinaface: return decode_retinaface(outputs, input, score);
    case Family::ultraface: return decode_ultraface(outputs, input, score);
    case Family::centerface: return decode_centerface(outputs, input, score);
    case Family::blazeface: return decode_blazeface(outputs, input, score);
  }
  fail(ErrorCode::internal, "a family of detectors without a decoder");
}

}  // namespace sdx::vision
