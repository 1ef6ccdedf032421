#pragma once
// Operations that reduce, or run along, axes. No axes (nullopt) means all; negative axes count from the end. Names, arguments and
// defaults are those of mlx.core. Errors: Error(invalid_argument) for axes outside the rank or given twice, and where there is
// nothing to take the largest of.

#include <optional>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// One axis or several; {} as an argument means all.
class Axes {
 public:
  Axes() = default;
  Axes(std::nullopt_t) {}                                                 // NOLINT: implicit on purpose
  Axes(int axis) : axes_(std::vector<int>{axis}) {}                       // NOLINT
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}                 // NOLINT
  Axes(std::optional<std::vector<int>> axes) : axes_(std::move(axes)) {}  // NOLINT
  const std::optional<std::vector<int>>& list() const noexcept { return axes_; }

 private:
  std::optional<std::vector<int>> axes_;
};

// Sums and products of booleans are int32, of integers of up to 32 bits int32 or uint32.
SDX_API array sum(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array prod(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array max(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});  // NaN if any element is
SDX_API array min(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array all(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array any(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array mean(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array median(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
// The divisor is the count minus `ddof`.
SDX_API array var(const array& a, const Axes& axis = {}, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
SDX_API array std(const array& a, const Axes& axis = {}, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
SDX_API array logsumexp(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
SDX_API array count_nonzero(const array& a, const Axes& axis = {}, bool keepdims = false, StreamOrDevice s = {});
// `precise` asks for float32 sums of 16-bit floats, which are computed that way in any case.
SDX_API array softmax(const array& a, const Axes& axis = {}, bool precise = false, StreamOrDevice s = {});

// Position (uint32) of the first largest element, or of a NaN if there is one; without an axis, in the flattened array.
SDX_API array argmax(const array& a, std::optional<int> axis = std::nullopt, bool keepdims = false, StreamOrDevice s = {});
SDX_API array argmin(const array& a, std::optional<int> axis = std::nullopt, bool keepdims = false, StreamOrDevice s = {});

// Cumulative results along an axis; without one, along the flattened array. If not `inclusive`, the element itself is left out.
SDX_API array cumsum(const array& a, std::optional<int> axis = std::nullopt, bool reverse = false, bool inclusive = true,
                     std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
SDX_API array cumprod(const array& a, std::optional<int> axis = std::nullopt, bool reverse = false, bool inclusive = true,
                      std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
SDX_API array cummax(const array& a, std::optional<int> axis = std::nullopt, bool reverse = false, bool inclusive = true,
                     StreamOrDevice s = {});
SDX_API array cummin(const array& a, std::optional<int> axis = std::nullopt, bool reverse = false, bool inclusive = true,
                     StreamOrDevice s = {});
SDX_API array logcumsumexp(const array& a, std::optional<int> axis = std::nullopt, bool reverse = false, bool inclusive = true,
                           StreamOrDevice s = {});

}  // namespace sdx::array
