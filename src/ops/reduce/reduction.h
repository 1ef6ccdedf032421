#pragma once
// The loops of reductions: which elements go into which output.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/cancel.h"
#include "base/thread_pool.h"

namespace sdx::ops {

// The shape that is left; with `keepdims` extents of 1 for the axes that go. S: Shape or SymShape.
template <class S>
S reduced_shape(const S& shape, const std::vector<bool>& flags, bool keepdims) {
  S out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!flags[i]) {
      out.push_back(shape[i]);
    } else if (keepdims) {
      out.emplace_back(1);
    }
  }
  return out;
}

// Neighbouring axes of the same kind merged, axes of extent 1 dropped. Outermost first.
struct ReductionPlan {
  struct Axis {
    std::int64_t extent;
    std::int64_t stride;  // in input elements
  };
  std::vector<Axis> kept;
  std::vector<Axis> reduced;
  std::int64_t outputs = 1;  // product of the kept extents
  std::int64_t length = 1;   // elements that go into one output; 0 when a reduced axis is empty
  bool inner_kept = false;   // the innermost axis stays: outputs are computed a row at a time
};

// `reduce[i]`: axis i is reduced.
ReductionPlan plan_reduction(const Shape& shape, const std::vector<bool>& reduce);

// Counts through axes [0, n) of `axes`; gives the offset at each position.
class Odometer {
 public:
  Odometer(const std::vector<ReductionPlan::Axis>& axes, std::size_t n) : axes_(axes), index_(n, 0) {}
  std::int64_t offset() const { return offset_; }
  void seek(std::int64_t position);
  void next();

 private:
  const std::vector<ReductionPlan::Axis>& axes_;
  std::vector<std::int64_t> index_;
  std::int64_t offset_ = 0;
};

// A Reducer has: State; State init() const; void add(State&, X) const; Y finish(const State&, int64_t n) const.
template <class X, class Y, class Reducer>
void reduce_rows(const ReductionPlan& plan, const X* x, Y* y, const Reducer& reducer, const StopCondition& stop) {
  using State = typename Reducer::State;
  const ReductionPlan::Axis inner = plan.kept.back();
  const std::int64_t rows = plan.outputs / inner.extent;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, inner.extent * plan.length));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<State> row(static_cast<std::size_t>(inner.extent));
    State* states = row.data();
    Odometer outer(plan.kept, plan.kept.size() - 1);
    outer.seek(begin);
    for (std::int64_t r = begin; r < end; ++r, outer.next()) {
      stop.check();
      for (std::int64_t i = 0; i < inner.extent; ++i) states[i] = reducer.init();
      Odometer at(plan.reduced, plan.reduced.size());
      for (std::int64_t k = 0; k < plan.length; ++k, at.next()) {
        const X* from = x + outer.offset() + at.offset();
        for (std::int64_t i = 0; i < inner.extent; ++i) reducer.add(states[i], from[i * inner.stride]);
      }
      for (std::int64_t i = 0; i < inner.extent; ++i) y[r * inner.extent + i] = reducer.finish(states[i], plan.length);
    }
  });
}

template <class X, class Y, class Reducer>
void reduce_each(const ReductionPlan& plan, const X* x, Y* y, const Reducer& reducer, const StopCondition& stop) {
  const std::int64_t run = plan.reduced.empty() ? 1 : plan.reduced.back().extent;
  const std::int64_t step = plan.reduced.empty() ? 1 : plan.reduced.back().stride;
  const std::int64_t runs = run == 0 ? 0 : plan.length / run;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, plan.length));
  parallel_for(plan.outputs, grain, [&](std::int64_t begin, std::int64_t end) {
    Odometer outer(plan.kept, plan.kept.size());
    outer.seek(begin);
    for (std::int64_t o = begin; o < end; ++o, outer.next()) {
      if (o % 1024 == 0) stop.check();
      auto state = reducer.init();
      Odometer at(plan.reduced, plan.reduced.empty() ? 0 : plan.reduced.size() - 1);
      for (std::int64_t k = 0; k < runs; ++k, at.next()) {
        const X* from = x + outer.offset() + at.offset();
        for (std::int64_t i = 0; i < run; ++i) reducer.add(state, from[i * step]);
      }
      y[o] = reducer.finish(state, plan.length);
    }
  });
}

template <class X, class Y, class Reducer>
void reduce(const ReductionPlan& plan, const X* x, Y* y, const Reducer& reducer, const StopCondition& stop) {
  if (plan.outputs == 0) return;
  if (plan.inner_kept) {
    reduce_rows(plan, x, y, reducer, stop);
  } else {
    reduce_each(plan, x, y, reducer, stop);
  }
}

}  // namespace sdx::ops
