// Boxes relative to the cells of maps.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "vision/detect/outputs.h"

namespace sdx::vision {
namespace {

using faces::Face;
using faces::Point;

// ---- YuNet from 2023 on

struct YunetLevel {
  int stride = 8;
  const Output *cls = nullptr, *obj = nullptr, *bbox = nullptr, *kps = nullptr;
};

std::vector<YunetLevel> yunet_levels(std::span<const Output> outputs) {
  std::vector<YunetLevel> levels;
  const std::vector<const Output*> scores = with_last_extent(outputs, 1), boxes = with_last_extent(outputs, 4),
                                   points = with_last_extent(outputs, 10);
  const bool by_extents = scores.size() == 6 && boxes.size() == 3 && points.size() == 3;
  for (std::size_t i = 0; i < 3; ++i) {
    YunetLevel level{8 << i};
    const auto named = [&](const char* kind) { return find_output(outputs, fmt::format("{}_{}", kind, level.stride)); };
    level.cls = named("cls");
    level.obj = named("obj");
    level.bbox = named("bbox");
    level.kps = named("kps");
    const bool by_name = level.cls != nullptr && level.obj != nullptr && level.bbox != nullptr && level.kps != nullptr;
    // Without names it does not matter which of two is `cls`: they are multiplied.
    if (!by_name && by_extents) level = {level.stride, scores[2 * i], scores[2 * i + 1], boxes[i], points[i]};
    if (!by_name && !by_extents)
      fail_outputs(outputs, "YuNet's are cls, obj [N,1], bbox [N,4] and kps [N,10] for cells of 8, 16 and 32 pixels");
    levels.push_back(level);
  }
  return levels;
}

Face yunet_face(const YunetLevel& level, std::size_t i, float column, float row, float score) {
  const auto stride = static_cast<float>(level.stride);
  const float* b = level.bbox->values.data() + i * 4;
  const float* k = level.kps->values.data() + i * 10;
  Face face;
  face.score = score;
  face.box.width = std::exp(b[2]) * stride;
  face.box.height = std::exp(b[3]) * stride;
  face.box.x = (column + b[0]) * stride - face.box.width / 2;
  face.box.y = (row + b[1]) * stride - face.box.height / 2;
  std::array<Point, 5> points;
  for (std::size_t n = 0; n < 5; ++n) points[n] = {(k[2 * n] + column) * stride, (k[2 * n + 1] + row) * stride};
  face.points = five_points(points);
  return face;
}

// ---- SCRFD

struct ScrfdLevel {
  const Output *score = nullptr, *box = nullptr, *points = nullptr;  // points: null where the model has none
};

std::vector<ScrfdLevel> scrfd_levels(std::span<const Output> outputs) {
  const std::vector<const Output*> scores = with_last_extent(outputs, 1), boxes = with_last_extent(outputs, 4),
                                   points = with_last_extent(outputs, 10);
  const std::size_t n = scores.size();
  if ((n != 3 && n != 5) || boxes.size() != n || (!points.empty() && points.size() != n)) {
    fail_outputs(outputs, "SCRFD's are scores [N,1], boxes [N,4] and perhaps points [N,10], for 3 or 5 sizes of cells");
  }
  std::vector<ScrfdLevel> levels(n);
  for (std::size_t i = 0; i < n; ++i) levels[i] = {scores[i], boxes[i], points.empty() ? nullptr : points[i]};
  return levels;
}

Face scrfd_face(const ScrfdLevel& level, std::size_t i, float stride, float x, float y) {
  const float* d = level.box->values.data() + i * 4;
  Face face;
  face.score = level.score->values[i];
  face.box = {x - d[0] * stride, y - d[1] * stride, (d[0] + d[2]) * stride, (d[1] + d[3]) * stride};
  if (level.points != nullptr) {
    const float* k = level.points->values.data() + i * 10;
    std::array<Point, 5> points;
    for (std::size_t n = 0; n < 5; ++n) points[n] = {x + k[2 * n] * stride, y + k[2 * n + 1] * stride};
    face.points = five_points(points);
  }
  return face;
}

// ---- CenterFace

struct CenterfaceMaps {
  const Output *heat = nullptr, *scale = nullptr, *offset = nullptr, *points = nullptr;
};

CenterfaceMaps centerface_maps(std::span<const Output> outputs) {
  CenterfaceMaps maps{find_output(outputs, "537"), find_output(outputs, "538"), find_output(outputs, "539"),
                      find_output(outputs, "540")};
  const bool named = maps.heat != nullptr && maps.scale != nullptr && maps.offset != nullptr && maps.points != nullptr;
  if (named) return maps;
  maps = {};
  for (const Output& o : outputs) {
    const std::int64_t channels = o.shape.size() == 4 ? o.shape[1] : 0;
    if (channels == 1) maps.heat = &o;
    if (channels == 2) (maps.scale == nullptr ? maps.scale : maps.offset) = &o;
    if (channels == 10) maps.points = &o;
  }
  if (maps.heat == nullptr || maps.scale == nullptr || maps.offset == nullptr || maps.points == nullptr) {
    fail_outputs(outputs, "CenterFace's are maps with 1, 2, 2 and 10 channels");
  }
  return maps;
}

// `i` is the number of the cell, `n` that of all. As in the original, the upper left corner is moved into the input, and the
// points are relative to it.
Face centerface_face(const CenterfaceMaps& maps, std::size_t i, std::size_t n, float column, float row, InputSize input) {
  const float *scale = maps.scale->values.data(), *offset = maps.offset->values.data(), *points = maps.points->values.data();
  const auto width = static_cast<double>(input.width), height = static_cast<double>(input.height);
  const double h = std::exp(static_cast<double>(scale[i])) * 4, w = std::exp(static_cast<double>(scale[n + i])) * 4;
  const double x = std::clamp((static_cast<double>(column) + static_cast<double>(offset[n + i]) + 0.5) * 4 - w / 2, 0.0, width);
  const double y = std::clamp((static_cast<double>(row) + static_cast<double>(offset[i]) + 0.5) * 4 - h / 2, 0.0, height);
  Face face;
  face.score = maps.heat->values[i];
  face.box = {static_cast<float>(x), static_cast<float>(y), static_cast<float>(std::min(x + w, width) - x),
              static_cast<float>(std::min(y + h, height) - y)};
  std::array<Point, 5> five;
  for (std::size_t k = 0; k < 5; ++k) {
    five[k] = {static_cast<float>(static_cast<double>(points[(2 * k + 1) * n + i]) * w + x),
               static_cast<float>(static_cast<double>(points[2 * k * n + i]) * h + y)};
  }
  face.points = five_points(five);
  return face;
}

}  // namespace

std::vector<Face> decode_yunet(std::span<const Output> outputs, InputSize input, float score) {
  std::vector<Face> faces;
  for (const YunetLevel& level : yunet_levels(outputs)) {
    const Grid grid = grid_of(outputs, *level.cls, input, level.stride, 1);
    for (const auto& [output, values] : {std::pair{level.obj, 1}, {level.bbox, 4}, {level.kps, 10}}) {
      require_cells(outputs, *output, grid, values);
    }
    const std::span<const float> cls = level.cls->values, obj = level.obj->values;
    const float square = score * score * 0.999F;  // most cells are far below: no root for them
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      for (std::int64_t column = 0; column < grid.columns; ++column) {
        const auto i = static_cast<std::size_t>(row * grid.columns + column);
        const float product = unit(cls[i]) * unit(obj[i]);
        if (!(product >= square)) continue;
        const float s = std::sqrt(product);
        if (s < score) continue;
        add_if_sane(faces, yunet_face(level, i, static_cast<float>(column), static_cast<float>(row), s));
      }
    }
  }
  return faces;
}

std::vector<Face> decode_scrfd(std::span<const Output> outputs, InputSize input, float score) {
  std::vector<Face> faces;
  int stride = 8;
  for (const ScrfdLevel& level : scrfd_levels(outputs)) {
    // 3 levels have two boxes a cell, 5 have one; some exports differ, and the number of elements tells.
    const auto cells = static_cast<std::int64_t>((input.width + stride - 1) / stride) * ((input.height + stride - 1) / stride);
    const std::int64_t anchors = static_cast<std::int64_t>(level.score->values.size()) >= 2 * cells ? 2 : 1;
    const Grid grid = grid_of(outputs, *level.score, input, stride, anchors);
    require_cells(outputs, *level.box, grid, 4 * anchors);
    if (level.points != nullptr) require_cells(outputs, *level.points, grid, 10 * anchors);
    for (std::int64_t i = 0; i < grid.cells() * anchors; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!(level.score->values[at] >= score)) continue;
      const std::int64_t cell = i / anchors;
      const auto s = static_cast<float>(stride);
      const std::int64_t row = cell / grid.columns, column = cell % grid.columns;
      add_if_sane(faces, scrfd_face(level, at, s, static_cast<float>(column) * s, static_cast<float>(row) * s));
    }
    stride *= 2;
  }
  return faces;
}

std::vector<Face> decode_centerface(std::span<const Output> outputs, InputSize input, float score) {
  const CenterfaceMaps maps = centerface_maps(outputs);
  const Grid grid = grid_of(outputs, *maps.heat, input, 4, 1);
  for (const auto& [output, values] : {std::pair{maps.scale, 2}, {maps.offset, 2}, {maps.points, 10}}) {
    require_cells(outputs, *output, grid, values);
  }
  std::vector<Face> faces;
  const auto n = static_cast<std::size_t>(grid.cells());
  for (std::size_t i = 0; i < n; ++i) {
    if (!(maps.heat->values[i] > score)) continue;
    const auto columns = static_cast<std::size_t>(grid.columns);
    const std::size_t row = i / columns, column = i % columns;
    add_if_sane(faces, centerface_face(maps, i, n, static_cast<float>(column), static_cast<float>(row), input));
  }
  return faces;
}

}  // namespace sdx::vision
