#pragma once
// Quantised matrices in the layouts of the operators that take them.

#include <sdx/quantize_weights.hpp>

#include "quantize/weights/block_matrix.h"
#include "quantize/weights/targets.h"

namespace sdx::quantize {

// Constants in the graph that owns the weights, and their use by nodes.
struct Operands {
  WeightForm form = WeightForm::qoperator;
  Scope* owner = nullptr;
  ValueId codes = kNoValue, scales = kNoValue, zeros = kNoValue;  // zeros: kNoValue where they are the middle
  BlockFormat format;
  std::int64_t k = 0, n = 0;
};

// Adds the constants, named after the weights.
Operands make_operands(const Target& target, const BlockMatrix& matrix, WeightForm form, bool gather);

// Makes the node compute with the operands. It may add nodes; the graph must then be sorted.
void use_operands(const Target& target, const Operands& operands, int accuracy_level);

}  // namespace sdx::quantize
