#pragma once
// Statistics of the values of a model while it runs on calibration data.

#include <functional>
#include <sdx/quantize.hpp>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace sdx::quantize {

// All of them, for as many passes as are needed. Throws Error(invalid_argument) where there are none.
std::vector<NamedValues> all_batches(CalibrationDataReader* data);

// For each value of the main graph, of float type and with `extents[i]` as its last extent, the sum of the products of its rows
// with each other, [extent, extent]. `done` receives them one after the other; not all are in memory at a time.
void input_products(const Model& model, std::span<const ValueId> values, std::span<const std::int64_t> extents,
                    const std::vector<NamedValues>& inputs, const SessionOptions& options,
                    const std::function<void(std::size_t, std::vector<float>)>& done);

// For each value, the largest magnitude at each place of the last axis.
std::vector<std::vector<float>> largest_magnitudes(const Model& model, std::span<const ValueId> values,
                                                   std::span<const std::int64_t> extents, const std::vector<NamedValues>& inputs,
                                                   const SessionOptions& options);

}  // namespace sdx::quantize
