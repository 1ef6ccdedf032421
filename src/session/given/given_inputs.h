#pragma once
// Compares the inputs of a run with the model's declarations.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"

namespace sdx::session {

// The symbols that name more than one axis of the inputs. Only these can turn out to stand for two sizes.
struct SharedSymbols {
  std::vector<std::string> names;
  std::vector<std::vector<std::int32_t>> axes;  // by input, then by axis: which of `names`, or -1
};

SDX_TOOLS_API SharedSymbols shared_symbols(const std::vector<ValueSpec>& inputs);

// Throws Error(invalid_argument) unless the value can be input `spec`. Returns whether an extent differs from a fixed one in the
// declaration: such models may run all the same (see kOtherExtents).
bool check_input(const ValueSpec& spec, const Value& value);

// Two axes of the inputs that have one symbol and different extents.
struct TwoSizes {
  struct Place {
    std::size_t input, axis;
  };
  std::string symbol;
  Place first, second;
};

enum class Empty { counts, skipped };

// `values`: parallel to the inputs; values that are not tensors, or whose rank differs from the declaration, do not count.
// `empty`: whether tensors without elements count.
std::optional<TwoSizes> find_two_sizes(const SharedSymbols& symbols, const std::vector<Value>& values,
                                       Empty empty = Empty::counts);

// "symbol 'n' is 5 in input 'a' (float32[n] given as float32[5]) and 1 in input 'b' (…)"
std::string describe(const TwoSizes& sizes, const std::vector<ValueSpec>& inputs, const std::vector<Value>& values);

// "input 'x' must be float32[2], received float32[3]; …" for all inputs with other extents than declared.
std::string describe_other_extents(const std::vector<ValueSpec>& inputs, const std::vector<Value>& values);

// All inputs with their types, one a line, for errors.
std::string describe(const std::vector<ValueSpec>& inputs);

SDX_TOOLS_API std::vector<std::string> names_of(const std::vector<ValueSpec>& specs);

}  // namespace sdx::session
