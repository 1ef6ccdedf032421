#pragma once
// Reads and updates parts of arrays of any element type. Arrays are immutable: an "update" returns a new one. Negative positions
// count from the end. A numeric position outside the array is an Error(invalid_argument) when the operation is built; one in an
// array of positions is an Error(runtime_failure) when the result is computed.

#include <optional>
#include <variant>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// start:stop:step as in Python; step may be negative.
struct Slice {
  std::optional<std::int64_t> start, stop, step;
};
struct NewAxis {};
struct Ellipsis {};
// An integer array selects positions; a bool array selects where it is true.
using Index = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, array>;

// How an update combines with existing elements. If a position occurs several times, `set` stores one of its values; all others
// apply each value.
enum class Update : std::uint8_t { set, add, subtract, multiply, divide, maximum, minimum };

// a[at...], by NumPy's rules: several index arrays broadcast, and their axes take the arrays' place if these are adjacent, else
// come first. A bool index array is computed at once, because the result's shape depends on it.
SDX_API array index(const array& a, const std::vector<Index>& at, StreamOrDevice s = {});
// Returns a copy of `a` after a[at...] = values (or +=, …). Values broadcast to a[at...] and take a's element type. A bool array
// with the shape of a's first axes is not computed at once if the values broadcast over the elements that it selects.
SDX_API array index_update(const array& a, const std::vector<Index>& at, const array& values, Update mode = Update::set,
                           StreamOrDevice s = {});

// a's elements at these positions along the axis; without one, of the flattened array.
SDX_API array take(const array& a, const array& indices, std::optional<int> axis = std::nullopt, StreamOrDevice s = {});
SDX_API array take(const array& a, std::int64_t index, std::optional<int> axis = std::nullopt, StreamOrDevice s = {});
// `indices` has the rank of `a`; axes other than `axis` broadcast.
SDX_API array take_along_axis(const array& a, const array& indices, std::optional<int> axis = -1, StreamOrDevice s = {});
SDX_API array put_along_axis(const array& a, const array& indices, const array& values, std::optional<int> axis = std::nullopt,
                             StreamOrDevice s = {});
// Like put_along_axis, but adds.
SDX_API array scatter_add_axis(const array& a, const array& indices, const array& values, int axis, StreamOrDevice s = {});

// One number per axis; numbers out of range are clamped, as in Python slices.
SDX_API array slice(const array& a, const Shape& start, const Shape& stop, const Shape& strides = {}, StreamOrDevice s = {});
SDX_API array slice_update(const array& a, const array& update, const Shape& start, const Shape& stop, const Shape& strides = {},
                           Update mode = Update::set, StreamOrDevice s = {});
// Starts at start_indices (integers, one for each of `axes`), shifted so that the slice lies entirely inside.
SDX_API array slice(const array& a, const array& start_indices, const std::vector<int>& axes, const Shape& slice_size,
                    StreamOrDevice s = {});
SDX_API array slice_update(const array& a, const array& update, const array& start_indices, const std::vector<int>& axes,
                           StreamOrDevice s = {});

// Returns blocks of shape `slice_sizes` (one number for each axis of `a`) that begin at indices[i] along axes[i]. The result's
// shape is the shape to which the index arrays broadcast, followed by slice_sizes.
SDX_API array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes, const Shape& slice_sizes,
                     StreamOrDevice s = {});
// Stores such blocks: `updates` has the shape that gather() would return.
SDX_API array scatter(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                      Update mode = Update::set, StreamOrDevice s = {});

// Positions of nonzero elements, one int64 array per axis. Computes `a` immediately.
SDX_API std::vector<array> nonzero(const array& a);

}  // namespace sdx::array
