// Boxes relative to a list of boxes that the input's size determines, or to the whole input.

#include <fmt/format.h>

#include <cmath>

#include "vision/detect/outputs.h"

namespace sdx::vision {
namespace {

using faces::Box;
using faces::Face;
using faces::Point;

// A box by its centre, in pixels of the input.
struct Prior {
  float x = 0, y = 0, width = 0, height = 0;
};

void add_cells(std::vector<Prior>& priors, std::int64_t columns, std::int64_t rows, float step, std::span<const float> sizes) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (const float size : sizes) {
        priors.push_back({(static_cast<float>(c) + 0.5F) * step, (static_cast<float>(r) + 0.5F) * step, size, size});
      }
    }
  }
}

// Sides are halved and rounded down at each step, but the first, which rounds up.
std::vector<Prior> yunet2022_priors(InputSize input) {
  static constexpr std::array<std::array<float, 3>, 4> kSizes{{{10, 16, 24}, {32, 48, 0}, {64, 96, 0}, {128, 192, 256}}};
  static constexpr std::array<std::size_t, 4> kCounts{3, 2, 2, 3};
  std::vector<Prior> priors;
  std::int64_t columns = (input.width + 1) / 2 / 2, rows = (input.height + 1) / 2 / 2;
  for (std::size_t level = 0; level < kSizes.size(); ++level) {
    columns /= 2;
    rows /= 2;
    add_cells(priors, columns, rows, static_cast<float>(8 << level), std::span(kSizes[level]).first(kCounts[level]));
  }
  return priors;
}

std::vector<Prior> retinaface_priors(InputSize input) {
  static constexpr std::array<std::array<float, 2>, 3> kSizes{{{16, 32}, {64, 128}, {256, 512}}};
  std::vector<Prior> priors;
  for (std::size_t level = 0; level < kSizes.size(); ++level) {
    const int step = 8 << level;
    add_cells(priors, (input.width + step - 1) / step, (input.height + step - 1) / step, static_cast<float>(step), kSizes[level]);
  }
  return priors;
}

// The variances are 0.1 for places and 0.2 for sizes.
Box box_of(const Prior& p, const float* l, float width_variance) {
  const float width = p.width * std::exp(l[2] * width_variance), height = p.height * std::exp(l[3] * 0.2F);
  return {p.x + l[0] * 0.1F * p.width - width / 2, p.y + l[1] * 0.1F * p.height - height / 2, width, height};
}

faces::Points points_of(const Prior& p, const float* k) {
  std::array<Point, 5> points;
  for (std::size_t n = 0; n < 5; ++n) points[n] = {p.x + k[2 * n] * 0.1F * p.width, p.y + k[2 * n + 1] * 0.1F * p.height};
  return five_points(points);
}

// The one output of that name, or with that last extent. It holds `extent` values for each of `count` boxes (0: for any number).
const Output& one_of(std::span<const Output> outputs, std::string_view name, std::int64_t extent, std::size_t count) {
  const Output* found = find_output(outputs, name);
  const std::vector<const Output*> fitting = with_last_extent(outputs, extent);
  if (found == nullptr && fitting.size() == 1) found = fitting.front();
  if (found == nullptr || found->shape.empty() || found->shape.back() != extent) {
    fail_outputs(outputs, fmt::format("there must be one output with a last extent of {}", extent));
  }
  if (count > 0 && found->values.size() != count * static_cast<std::size_t>(extent)) {
    fail_outputs(outputs,
                 fmt::format("'{}' must hold {} numbers for each of {} boxes for an input of this size, but holds {} in all",
                             found->name, extent, count, found->values.size()));
  }
  return *found;
}

// The output with this last extent, or several that follow one another.
std::vector<float> joined(std::span<const Output> outputs, std::int64_t extent) {
  std::vector<float> all;
  for (const Output* o : with_last_extent(outputs, extent)) all.insert(all.end(), o->values.begin(), o->values.end());
  return all;
}

float logistic(float v) { return 1 / (1 + std::exp(-std::fmin(std::fmax(v, -100.0F), 100.0F))); }

}  // namespace

std::vector<Face> decode_yunet2022(std::span<const Output> outputs, InputSize input, float score) {
  const std::vector<Prior> priors = yunet2022_priors(input);
  const std::span<const float> loc = one_of(outputs, "loc", 14, priors.size()).values,
                               conf = one_of(outputs, "conf", 2, priors.size()).values,
                               iou = one_of(outputs, "iou", 1, priors.size()).values;
  std::vector<Face> faces;
  for (std::size_t i = 0; i < priors.size() && i < iou.size(); ++i) {
    const float s = std::sqrt(conf[2 * i + 1] * unit(iou[i]));
    if (!(s >= score)) continue;
    // Whoever trained the model used 0.1 for the width, and OpenCV decodes it so.
    add_if_sane(faces, {box_of(priors[i], &loc[14 * i], 0.1F), s, points_of(priors[i], &loc[14 * i + 4])});
  }
  return faces;
}

std::vector<Face> decode_retinaface(std::span<const Output> outputs, InputSize input, float score) {
  const std::vector<Prior> priors = retinaface_priors(input);
  const std::span<const float> loc = one_of(outputs, "loc", 4, priors.size()).values,
                               conf = one_of(outputs, "conf", 2, priors.size()).values,
                               points = one_of(outputs, "landms", 10, priors.size()).values;
  std::vector<Face> faces;
  for (std::size_t i = 0; i < priors.size(); ++i) {
    if (!(conf[2 * i + 1] >= score)) continue;
    add_if_sane(faces, {box_of(priors[i], &loc[4 * i], 0.2F), conf[2 * i + 1], points_of(priors[i], &points[10 * i])});
  }
  return faces;
}

std::vector<Face> decode_ultraface(std::span<const Output> outputs, InputSize input, float score) {
  const std::span<const float> scores = one_of(outputs, "scores", 2, 0).values;
  const std::span<const float> boxes = one_of(outputs, "boxes", 4, scores.size() / 2).values;
  const auto width = static_cast<float>(input.width), height = static_cast<float>(input.height);
  std::vector<Face> faces;
  for (std::size_t i = 0; 4 * i < boxes.size() && 2 * i < scores.size(); ++i) {
    if (!(scores[2 * i + 1] > score)) continue;
    const float* b = &boxes[4 * i];
    add_if_sane(faces, {{b[0] * width, b[1] * height, (b[2] - b[0]) * width, (b[3] - b[1]) * height}, scores[2 * i + 1], {}});
  }
  return faces;
}

std::vector<Face> decode_blazeface(std::span<const Output> outputs, InputSize input, float score) {
  // Two boxes in each of 16 x 16 cells, then six in each of 8 x 8.
  constexpr std::size_t kBoxes = 896, kFine = 512;
  const std::vector<float> boxes = joined(outputs, 16), scores = joined(outputs, 1);
  if (input.width != 128 || input.height != 128) {
    fail_outputs(outputs,
                 fmt::format("BlazeFace (short range) takes 128 x 128 pixels, this model {} x {}", input.width, input.height));
  }
  if (boxes.size() != kBoxes * 16 || scores.size() != kBoxes) {
    fail_outputs(outputs, "BlazeFace (short range) returns 16 numbers and a score for each of 896 boxes");
  }
  std::vector<Face> faces;
  for (std::size_t i = 0; i < kBoxes; ++i) {
    const float s = logistic(scores[i]);
    if (!(s >= score)) continue;
    const std::size_t cell = i < kFine ? i / 2 : (i - kFine) / 6, columns = i < kFine ? 16 : 8;
    const auto step = 128 / static_cast<float>(columns);
    const std::size_t row = cell / columns, column = cell % columns;
    const float x = (static_cast<float>(column) + 0.5F) * step, y = (static_cast<float>(row) + 0.5F) * step;
    const float* b = &boxes[16 * i];
    const auto point = [&](std::size_t n) { return Point{x + b[4 + 2 * n], y + b[5 + 2 * n]}; };
    Face face;
    face.score = s;
    face.box = {x + b[0] - b[2] / 2, y + b[1] - b[3] / 2, b[2], b[3]};
    face.points.right_eye = point(0);
    face.points.left_eye = point(1);
    face.points.nose = point(2);
    face.points.mouth = point(3);
    face.points.right_ear = point(4);
    face.points.left_ear = point(5);
    add_if_sane(faces, face);
  }
  return faces;
}

}  // namespace sdx::vision
