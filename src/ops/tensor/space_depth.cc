// DepthToSpace: ai.onnx 1, 11 (mode), 13, 28. SpaceToDepth: ai.onnx 1, 13, 28 (mode).

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

struct SpaceDepthAttrs {
  std::int64_t blocksize = 0;
  std::string_view mode = "DCR";

  void fields(auto& f) {
    f.required("blocksize", blocksize);
    f("mode", mode);
  }
};

std::int64_t block_size(const SpaceDepthAttrs& attr) {
  const std::int64_t b = attr.blocksize;
  if (b < 1 || b > INT32_MAX) fail(ErrorCode::invalid_model, "'blocksize' must be positive, received {}", b);
  return b;
}

bool depth_first(const SpaceDepthAttrs& attr) {
  const std::string_view mode = attr.mode;
  if (mode != "DCR" && mode != "CRD") fail(ErrorCode::invalid_model, "'mode' must be DCR or CRD, received {}", mode);
  return mode == "DCR";
}

void check_rank(std::size_t rank) {
  if (rank != 4) fail(ErrorCode::invalid_model, "the input must be of rank 4 (N, C, H, W), received rank {}", rank);
}

Dim divided(const Dim& extent, std::int64_t by, const char* what) {
  if (extent.is_const() && extent.value() % by != 0) {
    fail(ErrorCode::invalid_model, "{} {} is not a multiple of {}", what, extent.value(), by);
  }
  return floor_div(extent, Dim(by));
}

SymShape to_space(const SymShape& in, std::int64_t b) {
  check_rank(in.size());
  return {in[0], divided(in[1], b * b, "the channel extent"), in[2] * Dim(b), in[3] * Dim(b)};
}

SymShape to_depth(const SymShape& in, std::int64_t b) {
  check_rank(in.size());
  return {in[0], in[1] * Dim(b * b), divided(in[2], b, "the height"), divided(in[3], b, "the width")};
}

// Extents that overflowed have become unknown.
Shape concrete(const SymShape& shape) {
  if (!all_const(shape)) fail(ErrorCode::invalid_model, "'blocksize' is too large for the input");
  return to_shape(shape);
}

template <SymShape (*Resolve)(const SymShape&, std::int64_t)>
void infer_blocks(InferContext& c) {
  const auto attr = parse<SpaceDepthAttrs>(c);
  const std::int64_t b = block_size(attr);
  depth_first(attr);
  if (const SymShape* in = c.shape(0)) return c.output(0, c.dtype(0), Resolve(*in, b));
  c.output(0, c.dtype(0), SymShape(4));
}

// The same loops serve both directions: `deep` is the tensor with more channels, `wide` the one with more pixels.
std::vector<CopyAxis> loops(const Shape& deep, std::int64_t b, bool dcr, bool from_deep) {
  const std::int64_t n = deep[0];
  const std::int64_t channels = deep[1] / (b * b);
  const std::int64_t h = deep[2];
  const std::int64_t w = deep[3];
  const std::int64_t plane = h * w;
  // Strides in the deep tensor of (channel, block row, block column).
  const std::int64_t deep_channel = dcr ? plane : b * b * plane;
  const std::int64_t deep_row = dcr ? b * channels * plane : b * plane;
  const std::int64_t deep_column = dcr ? channels * plane : plane;
  const std::int64_t wide_row = w * b;
  std::vector<CopyAxis> axes = {{n, deep[1] * plane, deep[1] * plane},
                                {channels, deep_channel, plane * b * b},
                                {h, w, wide_row * b},
                                {b, deep_row, wide_row},
                                {w, 1, b},
                                {b, deep_column, 1}};
  if (!from_deep) {
    for (CopyAxis& a : axes) std::swap(a.from, a.to);
  }
  return axes;
}

void run_depth_to_space(OpContext& c) {
  const auto attr = parse<SpaceDepthAttrs>(c);
  const Tensor in = widened(c.input(0));
  const std::int64_t b = block_size(attr);
  const Shape shape = concrete(to_space(to_sym(in.shape()), b));
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    copy_strided(in, 0, out, 0, loops(in.shape(), b, depth_first(attr), true));
  });
}

void run_space_to_depth(OpContext& c) {
  const auto attr = parse<SpaceDepthAttrs>(c);
  const Tensor in = widened(c.input(0));
  const std::int64_t b = block_size(attr);
  const Shape shape = concrete(to_depth(to_sym(in.shape()), b));
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    copy_strided(in, 0, out, 0, loops(shape, b, depth_first(attr), false));
  });
}

void add(OpTable& t, const char* name, InferFn infer, RunFn run) {
  t.add(OpDef(name, 1)
            .in("input", "T", types::any_tensor)
            .out("output", "T", types::any_tensor)
            .attrs<SpaceDepthAttrs>()
            .infer_with(infer)
            .run_with(run));
}

}  // namespace

void register_space_depth(OpTable& t) {
  add(t, "DepthToSpace", infer_blocks<to_space>, run_depth_to_space);
  add(t, "SpaceToDepth", infer_blocks<to_depth>, run_space_to_depth);
}

}  // namespace sdx::ops
