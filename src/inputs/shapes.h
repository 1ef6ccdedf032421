#pragma once
// Extents for inputs whose model leaves them open.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::inputs {

using Dimensions = std::vector<std::pair<std::string, std::int64_t>>;

// An extent that was chosen without being asked for, so that the user can be told.
struct ChosenExtent {
  std::string input, symbol;  // symbol: "" where the extent has none
  std::size_t axis = 0;
  std::int64_t extent = 0;
};

// The spec's shape with extents that are not fixed replaced: by the one in `dimensions` that has the axis's symbol (sums and
// products of symbols and numbers are worked out), else by what such an axis usually is:
//  - the first axis, and symbols like "batch": 1;
//  - symbols like "seq", "time", "tokens", "length": 16; "past…" and "cache…" too, "total…" 32, so that total = past + new;
//  - height and width, by their symbol or as the open axes of a 4-dimensional input: 224; its channels: 3;
//  - the second axis of integers of rank 2 (token ids, masks): 16;
//  - anything else: 1.
// An unknown rank becomes [1]. What was chosen without being asked for is appended to `chosen`.
Shape concrete_shape(const ValueSpec& spec, const Dimensions& dimensions, std::vector<ChosenExtent>* chosen = nullptr);

// Returns `shapes` and those of the given tensors.
std::vector<std::pair<std::string, Shape>> with_shapes_of(const NamedValues& given,
                                                          std::vector<std::pair<std::string, Shape>> shapes);

// Extends `dimensions`, whose entries count first, by an extent for each symbol of the inputs. concrete_shape() then gives a
// symbol one size in all inputs, and sums such as "past + seq" the sum of their parts. The extent is that of an input of a known
// shape (`known`: name and shape), else the largest of the usual extents of the open inputs' axes. A symbol that one input has
// twice means "any extent", as "?" does, and gets none.
Dimensions with_symbols(const std::vector<ValueSpec>& specs, const std::vector<std::pair<std::string, Shape>>& known,
                        Dimensions dimensions, std::vector<ChosenExtent>* chosen = nullptr);

// "input: batch = 1, seq = 16" for people; extents of 1 on a first axis are not worth a word. Empty when nothing remains.
std::string describe(const std::vector<ChosenExtent>& chosen);

// The inputs that hold one sample for each step along axis 0: those without a default whose first axis is open and has the symbol
// of the first such input; if none is open, those whose fixed first extent equals the first input's (rank 2 and up).
struct BatchAxis {
  std::vector<std::string> inputs;  // names; empty: the model has no batch
  std::int64_t fixed = -1;          // what the file declares, where all are fixed
  std::string symbol;               // of the open axis; may be empty
};
BatchAxis find_batch_axis(const std::vector<ValueSpec>& specs);

// The tensor repeated (or cut) along axis 0 until it is `extent` long; rank must be at least 1, and axis 0 not empty.
Tensor repeat_rows(const Tensor& t, std::int64_t extent);

}  // namespace sdx::inputs
