#pragma once
// Walking the windows of a pooling over one plane, for any number of spatial axes.

#include <vector>

#include "ops/conv/conv_geometry.h"

namespace sdx::ops {

// For every output position of a plane, in order, calls fn(output index, Window). The window offers the taps that lie inside
// the input, as runs along the last axis.
class PoolWalker {
 public:
  explicit PoolWalker(const std::vector<WindowAxis>& axes)
      : axes_(axes), at_(axes.size()), ranges_(axes.size()), tap_(axes.size()) {}

  // fn(o) is called with ranges set for output o; then for_each_run() and inside_count() may be used.
  template <class F>
  void for_each_output(F&& fn) {
    std::int64_t total = 1;
    for (const WindowAxis& a : axes_) total *= a.out;
    if (total == 0) return;
    std::fill(at_.begin(), at_.end(), 0);
    for (std::size_t d = 0; d < axes_.size(); ++d) ranges_[d] = taps_inside(axes_[d], 0);
    for (std::int64_t o = 0; o < total; ++o) {
      fn(o);
      for (std::size_t d = axes_.size(); d-- > 0;) {
        at_[d] = at_[d] + 1 == axes_[d].out ? 0 : at_[d] + 1;
        ranges_[d] = taps_inside(axes_[d], at_[d]);
        if (at_[d] != 0) break;
      }
    }
  }

  // fn(first input index in the plane, step, count) for runs that cover the window's taps inside the input, in order.
  template <class F>
  void for_each_run(F&& fn) {
    const std::size_t last = axes_.size() - 1;
    for (const IndexRange& r : ranges_) {
      if (r.size() == 0) return;
    }
    for (std::size_t d = 0; d < last; ++d) tap_[d] = ranges_[d].begin;
    const WindowAxis& a = axes_[last];
    const std::int64_t first = a.start(at_[last]) + ranges_[last].begin * a.dilation;
    while (true) {
      std::int64_t base = 0;
      for (std::size_t d = 0; d < last; ++d) base = base * axes_[d].in + axes_[d].start(at_[d]) + tap_[d] * axes_[d].dilation;
      fn(base * a.in + first, a.dilation, ranges_[last].size());
      std::size_t d = last;
      while (d > 0 && ++tap_[d - 1] == ranges_[d - 1].end) {
        tap_[d - 1] = ranges_[d - 1].begin;
        --d;
      }
      if (d == 0) return;
    }
  }

  // Taps inside the input.
  std::int64_t inside_count() const {
    std::int64_t n = 1;
    for (const IndexRange& r : ranges_) n *= r.size();
    return n;
  }

  // Taps inside the input and its padding: with ceil_mode a window may reach beyond both.
  double padded_count() const {
    double n = 1;
    for (std::size_t d = 0; d < axes_.size(); ++d) {
      const WindowAxis& a = axes_[d];
      const std::int64_t room = a.in + a.pad_end - a.start(at_[d]);
      n *= static_cast<double>(std::clamp<std::int64_t>(ceil_div(room, a.dilation), 0, a.kernel));
    }
    return n;
  }

 private:
  const std::vector<WindowAxis>& axes_;
  std::vector<std::int64_t> at_;
  std::vector<IndexRange> ranges_;
  std::vector<std::int64_t> tap_;
};

inline Shape pooled_shape(const Shape& x, const std::vector<WindowAxis>& axes) {
  Shape out{x[0], x[1]};
  for (const WindowAxis& a : axes) out.push_back(a.out);
  return out;
}

}  // namespace sdx::ops
