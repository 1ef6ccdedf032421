#pragma once
// Integers that shape operators take from attributes or inputs, and passing known elements on.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/dim.h"
#include "ops/context.h"
#include "ops/signature.h"

namespace sdx::ops {

// The elements of integer input i, when all are known numbers.
std::optional<std::vector<std::int64_t>> known_ints(const InferContext& c, std::size_t i);

// Reads `attribute` if the node has it, else input i. In inference, nullopt means "given, but not known yet"; `given` says
// whether there is one at all.
struct AxesArgument {
  bool given = false;
  std::optional<std::vector<std::int64_t>> axes;
};
AxesArgument axes_argument(const InferContext& c, std::size_t i, const std::optional<IntList>& attribute);
AxesArgument axes_argument(const OpContext& c, std::size_t i, const std::optional<IntList>& attribute);

// The number of elements of a rank-1 input, if known.
std::optional<std::int64_t> known_length(const InferContext& c, std::size_t i);

// Output 0 has the elements of input 0, when output 0 is of rank 0 or 1.
void pass_elements(InferContext& c);

// True when `d` cannot be negative: a number >= 0, or a plain symbol.
bool surely_not_negative(const Dim& d);
// min and max that notice when the difference decides.
Dim least(const Dim& a, const Dim& b);
Dim most(const Dim& a, const Dim& b);
// Two descriptions of one extent: the more precise one. Throws Error(invalid_model) naming `what` when they contradict.
Dim agree(const Dim& a, const Dim& b, std::string_view what);

}  // namespace sdx::ops
