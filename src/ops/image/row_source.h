#pragma once
// The sources of a copy's rows, if each axis has its own source positions.

#include <span>

#include "ops/tensor/movement.h"

namespace sdx::ops {

// Goes over output rows in order, without a division for each. `axes` are those around the rows, each with its `extent`;
// source_of(axis, i) is the position in the input that position i of the output comes from, -1: none.
template <class Axis, class SourceOf>
class RowSource {
 public:
  RowSource(std::span<const Axis> axes, const Ints& strides, const SourceOf& source_of, std::int64_t row)
      : axes_(axes), strides_(strides), source_of_(source_of), at_(axes.size()) {
    for (std::size_t d = axes.size(); d-- > 0;) {
      at_[d] = row % axes[d].extent;
      row /= axes[d].extent;
    }
    settle();
  }
  // The offset of the row's source; -1: the row is filled.
  std::int64_t offset() const { return offset_; }
  void next() {
    if (axes_.empty()) return;
    const std::size_t last = axes_.size() - 1;
    if (++at_[last] < axes_[last].extent) return settle_last();
    at_[last] = 0;
    for (std::size_t d = last; d-- > 0;) {
      if (++at_[d] < axes_[d].extent) break;
      at_[d] = 0;
    }
    settle();
  }

 private:
  void settle() {
    before_ = 0;
    for (std::size_t d = 0; d + 1 < axes_.size() && before_ >= 0; ++d) before_ = further(before_, d);
    settle_last();
  }
  void settle_last() {
    if (!axes_.empty()) offset_ = before_ < 0 ? -1 : further(before_, axes_.size() - 1);
  }
  std::int64_t further(std::int64_t offset, std::size_t d) const {
    const std::int64_t s = source_of_(axes_[d], at_[d]);
    return s < 0 ? -1 : offset + s * strides_[d];
  }

  std::span<const Axis> axes_;
  const Ints& strides_;
  SourceOf source_of_;
  Ints at_;
  std::int64_t before_ = 0;  // offset of all axes but the last
  std::int64_t offset_ = 0;
};

}  // namespace sdx::ops
