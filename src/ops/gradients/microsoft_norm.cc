// Gradients of com.microsoft's fused normalisations, written as the operators that they fuse.

#include "ops/gradients/windows.h"
#include "ops/norm/signatures.h"

namespace sdx::ops {
namespace {

using Outputs = std::vector<Expr>;

// The statistics, outputs 1 and 2, are computed where the node has them.
Outputs normalised(GradientContext& c, const char* op, Expr sum, const std::vector<Expr>& weights) {
  const auto has = [&](std::size_t i) { return c.node().outputs.size() > i && c.node().outputs[i] != kNoValue; };
  std::vector<Expr> inputs{sum};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const float epsilon = parse<SkipNormAttrs>(c).epsilon;
  const bool statistics = has(1) || has(2);
  Outputs out = c.emit_many(op, inputs, statistics ? 3 : 1, {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
  out.resize(3);
  out.push_back(sum);
  return out;
}

Outputs skip_layer_norm(GradientContext& c) {
  using enum SkipNormIn::Slot;
  const Expr sum = c.has_input(kBias) ? c.in(kInput) + c.in(kSkip) + c.in(kBias) : c.in(kInput) + c.in(kSkip);
  std::vector<Expr> weights{c.in(kGamma)};
  if (c.has_input(kBeta)) weights.push_back(c.in(kBeta));
  return normalised(c, "LayerNormalization", sum, weights);
}

Outputs skip_simplified(GradientContext& c) {
  using enum SkipNormIn::Slot;
  const Expr plain = c.in(kInput) + c.in(kSkip);
  const Expr sum = c.has_input(kSimplifiedBias) ? plain + c.in(kSimplifiedBias) : plain;
  const float epsilon = parse<SkipNormAttrs>(c).epsilon;
  const Expr y = c.emit("SimplifiedLayerNormalization", {sum, c.in(kGamma)}, {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
  const Expr inverse = 1.0 / call("Sqrt", c.mean(square(sum), {-1}) + static_cast<double>(epsilon));
  const bool statistics = c.node().outputs.size() > 1 && (c.node().outputs[1] != kNoValue || c.node().outputs.size() > 2);
  if (!statistics) return {y, {}, {}, sum};
  const auto as_float = [&](Expr e) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(DataType::float32)}}); };
  return {y, as_float(c.zeros_like(inverse)), as_float(inverse), sum};
}

Outputs embed_layer_norm(GradientContext& c) {
  constexpr std::size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4, kGamma = 5, kBeta = 6, kMask = 7,
                        kPositionIds = 8;
  const auto rows = [&](std::size_t table, Expr at) { return c.emit("Gather", {c.in(table), at}, {{"axis", std::int64_t{0}}}); };
  const Expr length = c.emit("Squeeze", {c.extents(c.in(kIds), 1, 2)});
  const Expr at = c.has_input(kPositionIds) ? c.in(kPositionIds) : c.emit("Range", {c.int_scalar(0), length, c.int_scalar(1)});
  Expr sum = rows(kWords, c.in(kIds)) + rows(kPositions, at);
  if (c.has_input(kSegments)) sum = sum + rows(kSegmentTable, c.in(kSegments));
  const Outputs y = normalised(c, "LayerNormalization", sum, {c.in(kGamma), c.in(kBeta)});
  const auto to = [&](Expr e, DataType t) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(t)}}); };
  const Expr kept = c.has_input(kMask) ? to(call("Equal", to(c.in(kMask), DataType::int64), c.int_scalar(1)), DataType::int64)
                                       : call("Sub", c.in(kIds), c.in(kIds));
  return {y[0], to(c.sum(to(kept, DataType::int64), {1}, false), DataType::int32), sum};
}

// --- GroupNorm: channels last unless said otherwise, with an activation -----------------------------------------------------

Expr transposed(GradientContext& c, Expr e, std::int64_t rank, bool to_first) {
  std::vector<std::int64_t> perm{0};
  if (to_first) perm.push_back(rank - 1);
  for (std::int64_t i = to_first ? 1 : 2; i < (to_first ? rank - 1 : rank); ++i) perm.push_back(i);
  if (!to_first) perm.push_back(1);
  return c.emit("Transpose", {e}, {{"perm", perm}});
}

Expr group_norm(GradientContext& c, Expr x) {
  const auto attr = parse<ImageGroupNormAttrs>(c);
  const std::int64_t rank = c.rank(c.in(0));
  const Expr first = attr.channels_last ? transposed(c, x, rank, true) : x;
  Expr y = c.emit("GroupNormalization", {first, c.cast_like(c.in(1), x), c.cast_like(c.in(2), x)},
                  {{"epsilon", attr.epsilon}, {"num_groups", attr.groups}});
  if (attr.channels_last) y = transposed(c, y, rank, false);
  return attr.activation == 1 ? y * call("Sigmoid", y) : y;
}

Outputs plain_group_norm(GradientContext& c) { return {group_norm(c, c.in(0))}; }

// The skipped connection is an image, or one value for each channel.
Outputs skip_group_norm(GradientContext& c) {
  const auto attr = parse<ImageGroupNormAttrs>(c);
  const std::int64_t rank = c.rank(c.in(0));
  const auto along = [&](Expr e) {
    return attr.channels_last ? e : c.emit("Unsqueeze", {e, c.ints(inner_axes(static_cast<std::size_t>(rank - 2)))});
  };
  Expr skip = c.in(3);
  if (c.rank(skip) == 2) {
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 0; i < rank - 2; ++i) axes.push_back(attr.channels_last ? i + 1 : i + 2);
    skip = c.emit("Unsqueeze", {skip, c.ints(axes)});
  }
  Expr sum = c.in(0) + skip;
  if (c.has_input(4)) {
    const Expr bias = c.emit("Unsqueeze", {c.in(4), c.ints({0})});
    sum = sum + along(bias);
  }
  return {group_norm(c, sum), sum};
}

template <Outputs (*formula)(GradientContext&)>
void by_formula(GradientContext& c) {
  c.through(formula);
}

}  // namespace

void register_gradients_microsoft_norm(GradientTable& t) {
  t.add({{"com.microsoft.SkipLayerNormalization", by_formula<skip_layer_norm>},
         {"com.microsoft.SkipSimplifiedLayerNormalization", by_formula<skip_simplified>},
         {"com.microsoft.EmbedLayerNormalization", by_formula<embed_layer_norm>},
         {"com.microsoft.GroupNorm", by_formula<plain_group_norm>},
         {"com.microsoft.SkipGroupNorm", by_formula<skip_group_norm>}});
}

}  // namespace sdx::ops
