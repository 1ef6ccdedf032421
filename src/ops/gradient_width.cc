#include "ops/gradient_width.h"
#include "base/words.h"
#include "tensor/halves.h"

#include <string_view>

namespace sdx::ops {
namespace {

constexpr std::string_view kOperators =
    "AveragePool BatchNormalization CumProd GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization "
    "InstanceNormalization LRN LayerNormalization LpNormalization LpPool MeanVarianceNormalization NegativeLogLikelihoodLoss "
    "RMSNormalization ReduceL2 ReduceLogSum ReduceMax ReduceMean ReduceMin ReduceProd SimplifiedLayerNormalization "
    "SoftmaxCrossEntropyLoss";

Expr cast(GradientContext& c, Expr e, DataType to) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(to)}}); }

}  // namespace

bool needs_width(GradientContext& c) {
  return c.has_input(0) && is_half(c.dtype(c.in(0))) && has_word(kOperators, c.node().op_type);
}

std::vector<Expr> in_float32(GradientContext& c) {
  std::vector<Expr> inputs;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Expr given = c.has_input(i) ? c.in(i) : Expr{};
    inputs.push_back(given && is_half(c.dtype(given)) ? cast(c, given, DataType::float32) : given);
  }
  const std::vector<ValueId>& outputs = c.node().outputs;
  std::vector<Expr> results = c.repeat_many(inputs, {}, outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoValue) continue;
    const DataType type = c.dtype(c.expr(outputs[i]));
    if (is_half(type)) results[i] = cast(c, results[i], type);
  }
  return results;
}

}  // namespace sdx::ops
