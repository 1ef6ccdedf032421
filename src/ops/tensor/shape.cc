// Shape: ai.onnx 1, 13, 15 (start/end), 19, 21, 23, 24, 25.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct ShapeAttrs {
  std::int64_t start = 0;
  std::optional<std::int64_t> end;

  void fields(auto& f) {
    f("start", start);
    f("end", end);
  }
};

// [start, end) of the axes that are reported, clamped to the rank. Source: ONNX Shape-15.
std::pair<std::size_t, std::size_t> range(const ShapeAttrs& attr, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  const auto clamp = [r](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + r : v, 0, r); };
  const std::int64_t start = clamp(attr.start);
  const std::int64_t end = clamp(attr.end.value_or(r));
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(std::max(start, end))};
}

void infer_shape(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, DataType::int64, SymShape{Dim::unknown()});
  const auto [start, end] = range(parse<ShapeAttrs>(c), s->size());
  std::vector<Dim> extents(s->begin() + static_cast<std::ptrdiff_t>(start), s->begin() + static_cast<std::ptrdiff_t>(end));
  c.output(0, DataType::int64, SymShape{static_cast<std::int64_t>(extents.size())});
  c.output_sym(0, std::move(extents));
}

void run_shape(OpContext& c) {
  const Shape& s = c.input(0).shape();
  const auto [start, end] = range(parse<ShapeAttrs>(c), s.size());
  Tensor& out = c.output(0, DataType::int64, {static_cast<std::int64_t>(end - start)});
  std::copy(s.begin() + static_cast<std::ptrdiff_t>(start), s.begin() + static_cast<std::ptrdiff_t>(end),
            out.mutable_values<std::int64_t>().begin());
}

}  // namespace

void register_shape(OpTable& t) {
  t.add(OpDef("Shape", 1)
            .in("data", "T", types::any_tensor)
            .out("shape", "T1", types::int64)
            .attrs<ShapeAttrs>()
            .infer_with(infer_shape)
            .run_with(run_shape));
}

}  // namespace sdx::ops
