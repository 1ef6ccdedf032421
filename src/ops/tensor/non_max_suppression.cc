// NonMaxSuppression: ai.onnx 10, 11.

#include <algorithm>
#include <array>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/util/movement.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in order. Source: ONNX NonMaxSuppression-11: any diagonal pair, or centre and size (x, y, width, height).
Box box_at(const float* p, bool centered) {
  if (centered) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0) || !(width > 0)) return false;
  const float common = height * width;
  const float all = a.area() + b.area() - common;
  return all > 0 && common / all > threshold;
}

struct Limits {
  std::int64_t most = 0;
  float iou = 0;
  bool has_score = false;
  float score = 0;
};

void select(const OpContext& c, const std::vector<Box>& boxes, const float* scores, const Limits& limits, Ints& selected) {
  Ints candidates;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (!limits.has_score || scores[i] > limits.score) candidates.push_back(static_cast<std::int64_t>(i));
  }
  // Positive infinity orders before all, NaN after all: a strict weak order even for broken scores.
  const auto better = [&](std::int64_t a, std::int64_t b) {
    const float x = scores[a];
    const float y = scores[b];
    return x > y || (x == x && y != y);
  };
  std::stable_sort(candidates.begin(), candidates.end(), better);
  for (const std::int64_t i : candidates) {
    if (static_cast<std::int64_t>(selected.size()) >= limits.most) return;
    c.stop().check();
    const Box& box = boxes[static_cast<std::size_t>(i)];
    const bool suppressed = std::any_of(selected.begin(), selected.end(), [&](std::int64_t s) {
      return overlaps(box, boxes[static_cast<std::size_t>(s)], limits.iou);
    });
    if (!suppressed) selected.push_back(i);
  }
}

template <class T>
T scalar(const OpContext& c, std::size_t i, T otherwise) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("input {} must be one number, received {}", i, t->type_string());
  return t->values<T>()[0];
}

void infer_nms(InferContext& c) { c.output(0, DataType::int64, SymShape{Dim(), Dim(3)}); }

void run_nms(OpContext& c) {
  const Tensor& boxes = c.input(0);
  const Tensor& scores = c.input(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 || boxes.dim(0) != scores.dim(0) ||
      boxes.dim(1) != scores.dim(2)) {
    c.fail("expected boxes [batch, n, 4] and scores [batch, classes, n], received {} and {}", boxes.type_string(),
           scores.type_string());
  }
  const Limits limits{scalar<std::int64_t>(c, 2, 0), scalar<float>(c, 3, 0.0F), c.has_input(4), scalar<float>(c, 4, 0.0F)};
  const bool centered = c.attrs().get_int("center_point_box", 0) != 0;
  const std::int64_t n = boxes.dim(1);
  std::vector<std::array<std::int64_t, 3>> rows;
  for (std::int64_t b = 0; b < boxes.dim(0) && scores.size() > 0 && limits.most > 0; ++b) {
    std::vector<Box> corners;
    for (std::int64_t i = 0; i < n; ++i) corners.push_back(box_at(c.data<float>(0) + (b * n + i) * 4, centered));
    for (std::int64_t k = 0; k < scores.dim(1); ++k) {
      Ints selected;
      select(c, corners, c.data<float>(1) + (b * scores.dim(1) + k) * n, limits, selected);
      for (const std::int64_t s : selected) rows.push_back({b, k, s});
    }
  }
  Tensor& out = c.output(0, DataType::int64, {static_cast<std::int64_t>(rows.size()), 3});
  auto* to = static_cast<std::int64_t*>(out.mutable_data());
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
}

}  // namespace

void register_non_max_suppression(OpTable& t) {
  t.add(OpDef("NonMaxSuppression", 10)
            .in("boxes", "", bit(DataType::float32))
            .in("scores", "", bit(DataType::float32))
            .in("max_output_boxes_per_class", "", types::int64, Arity::optional)
            .in("iou_threshold", "", bit(DataType::float32), Arity::optional)
            .in("score_threshold", "", bit(DataType::float32), Arity::optional)
            .out("selected_indices", "", types::int64)
            .attr("center_point_box", AttrKind::i)
            .infer_with(infer_nms)
            .run_with(run_nms));
}

}  // namespace sdx::ops
