#include "ops/reduce/reduction.h"

#include <algorithm>

namespace sdx::ops {

ReductionPlan plan_reduction(const Shape& shape, const std::vector<bool>& reduce) {
  ReductionPlan plan;
  std::int64_t stride = 1;
  bool last_reduced = false;
  bool any = false;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::int64_t extent = shape[axis];
    (reduce[axis] ? plan.length : plan.outputs) *= extent;
    if (extent == 1) continue;
    auto& list = reduce[axis] ? plan.reduced : plan.kept;
    if (!any) plan.inner_kept = !reduce[axis];
    if (any && last_reduced == reduce[axis]) {
      list.back().extent *= extent;
    } else {
      list.push_back({extent, stride});
    }
    any = true;
    last_reduced = reduce[axis];
    stride *= std::max<std::int64_t>(extent, 1);
  }
  std::reverse(plan.kept.begin(), plan.kept.end());
  std::reverse(plan.reduced.begin(), plan.reduced.end());
  return plan;
}

void Odometer::seek(std::int64_t position) {
  offset_ = 0;
  for (std::size_t i = index_.size(); i-- > 0;) {
    index_[i] = position % axes_[i].extent;
    position /= axes_[i].extent;
    offset_ += index_[i] * axes_[i].stride;
  }
}

void Odometer::next() {
  for (std::size_t i = index_.size(); i-- > 0;) {
    offset_ += axes_[i].stride;
    if (++index_[i] < axes_[i].extent) return;
    offset_ -= axes_[i].stride * axes_[i].extent;
    index_[i] = 0;
  }
}

}  // namespace sdx::ops
