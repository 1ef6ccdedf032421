#pragma once
// GPTQ (Frantar and others 2022): a matrix is quantised column by column, and the columns still to come compensate for the change
// that rounding a column causes in the products with real inputs.

#include <cstdint>
#include <vector>

#include "quantize/weights/block_matrix.h"

namespace sdx::quantize {

struct GptqSettings {
  double damp = 0.01;      // added to the Hessian's diagonal, as a part of its mean; ten times as much where that does not do
  bool act_order = false;  // columns with large inputs first; scales are then chosen from the weights as they were
  Rounding rounding = Rounding::nearest;  // how scales are chosen; not hqq
};

// `weights` [rows, columns], `hessian` [columns, columns]: the sum of the products of inputs with each other. Columns whose input
// was always 0 keep their rounded weights. Runs on the current pool's threads.
BlockMatrix gptq(std::vector<float> weights, std::int64_t rows, std::int64_t columns, const BlockFormat& format,
                 const std::vector<float>& hessian, const GptqSettings& settings);

}  // namespace sdx::quantize
