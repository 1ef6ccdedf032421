#pragma once
// Sorting. NaN comes last; complex numbers are in lexicographic order. An axis of nullopt means the flattened array. Names and
// arguments are those of mlx.core. Errors: Error(invalid_argument) for an axis outside the rank, and for kth or k outside the
// axis.

#include <optional>
#include <string_view>

#include <sdx/array/array.hpp>

namespace sdx::array {

SDX_API array sort(const array& a, std::optional<int> axis = -1, StreamOrDevice s = {});
// Positions (uint32) in sorted order; equal elements keep their order.
SDX_API array argsort(const array& a, std::optional<int> axis = -1, StreamOrDevice s = {});
// The element at `kth` (negative: from the end) is where sorting would put it, none larger before it, none smaller after it.
SDX_API array partition(const array& a, int kth, std::optional<int> axis = -1, StreamOrDevice s = {});
SDX_API array argpartition(const array& a, int kth, std::optional<int> axis = -1, StreamOrDevice s = {});
// The k largest, in no particular order.
SDX_API array topk(const array& a, int k, std::optional<int> axis = -1, StreamOrDevice s = {});
// The position at which each value would be inserted into the sorted sequence (one axis): `side` "left" before equal ones,
// "right" after them. uint32.
SDX_API array searchsorted(const array& sorted_sequence, const array& values, std::string_view side = "left",
                           StreamOrDevice s = {});

}  // namespace sdx::array
