// Reductions, ArgMax, ArgMin and TopK in float32, float64 and integers.

#include "kernels/cpu/rows/reduce.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/order/reductions.h"
#include "kernels/cpu/order/top_k.h"
#include "ops/evaluate.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

// A group of neighbouring axes: [begin, end).
struct Axes {
  std::size_t begin, end;
};

// Reduces groups of axes one after the other, the last group first: so the whole input is read in order, and results between
// groups are small.
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Reduce op, DataType dtype, std::vector<Axes> groups, Node node)
      : op_(op),
        dtype_(dtype),
        partial_(dtype == DataType::float32 ? dtype : partial_type(op, dtype)),
        groups_(std::move(groups)),
        node_(std::move(node)) {}
  std::string_view name() const override { return dtype_ == DataType::float32 ? "reduce-f32" : "reduce-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    // Results lie in the workspace for all groups but the last, each no larger than the one before; for the last group, too, if
    // its results are partial.
    Shape x = c.input_shape(0);
    std::size_t between = 0;
    for (std::size_t i = 0; i < groups_.size() && i < 2; ++i) {
      const std::size_t bytes = rounded_bytes(reduced(x, groups_[i]));
      if (i + 1 < groups_.size() || partial_ != dtype_) between += bytes;
    }
    c.workspace_bytes = between;
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    Shape x = c.input(0).shape();
    const std::int64_t results = c.output(0).size();
    if (results == 0) return;
    if (c.input(0).size() == 0) return reduce_nothing(c);
    if (x.size() < groups_.front().end) {
      fail(ErrorCode::runtime_failure, "cannot reduce shape {} along axes {} to {}: it has fewer", to_string(x),
           groups_.back().begin, groups_.front().end - 1);
    }
    const void* from = c.input(0).data();
    void* const y = c.output(0).mutable_data();
    auto* between = static_cast<char*>(c.workspace);
    std::size_t step = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Axes g = groups_[i];
      const Lanes e{ops::product(x, 0, g.begin), ops::product(x, g.begin, g.end), ops::product(x, g.end, x.size())};
      const std::size_t bytes = rounded_bytes(reduced(x, g));
      void* to = i + 1 == groups_.size() && partial_ == dtype_ ? y : between + (i % 2) * step;
      if (i == 0) step = bytes;
      reduce(i, from, to, e);
      from = to;
    }
    if (dtype_ == DataType::float32 || !has_last_step(op_, dtype_)) return;
    reduce_last_step(op_, dtype_, from, y, results, c.input(0).size() / results);
  }

 private:
  // Leaves a reduction over nothing to the reference kernel.
  void reduce_nothing(const KernelContext& c) const {
    const std::vector<Value> made = ops::evaluate(node_, *ops::find(node_), c.inputs);
    ops::copy_all(made.at(0).tensor(), c.output(0));
  }
  std::size_t rounded_bytes(std::int64_t elements) const { return (byte_size(partial_, elements) + 63) / 64 * 64; }
  // Sets the extents of these axes to 1, and returns the number of elements that are left.
  static std::int64_t reduced(Shape& x, Axes g) {
    for (std::size_t i = g.begin; i < g.end; ++i) x[i] = 1;
    return ops::product(x, 0, x.size());
  }
  // Returns the operation for one group. Means of means, norms of norms and so on are those of all elements; squares are taken in
  // the first group, a logarithm in the last.
  Reduce op_of(std::size_t group) const {
    const bool first = group == 0, last = group + 1 == groups_.size();
    if (op_ == Reduce::log_sum && !last) return Reduce::sum;
    return op_ == Reduce::sum_square && !first ? Reduce::sum : op_;
  }
  void reduce(std::size_t group, const void* x, void* y, const Lanes& e) const {
    if (dtype_ == DataType::float32) {
      reduce_f32(op_of(group), static_cast<const float*>(x), static_cast<float*>(y), e.outer, e.count, e.inner);
    } else {
      (group == 0 ? reduce_typed : reduce_partial)(op_, dtype_, x, y, e);
    }
  }

  Reduce op_;
  DataType dtype_, partial_;
  std::vector<Axes> groups_;  // at least one; the last axes first
  Node node_;
};

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

// Returns the groups of neighbouring axes to reduce, the last ones first. An axis of extent 1 separates nothing.
std::vector<Axes> groups_of(const SymShape& x, const std::vector<bool>& reduces) {
  std::vector<Axes> groups;
  bool open = false;
  for (std::size_t i = x.size(); i-- > 0;) {
    if (is_one(x[i])) continue;
    if (reduces[i] && open) {
      groups.back().begin = i;
    } else if (reduces[i]) {
      groups.push_back({i, i + 1});
    }
    open = reduces[i];
  }
  if (groups.empty()) groups.push_back({0, 0});
  return groups;
}

template <Reduce Op>
std::unique_ptr<Kernel> make_reduce(LowerContext& c) {
  const auto attr = ops::parse<ops::ReduceAttrs>(c);
  if (c.dtype(0) != DataType::float32 && !reduces_typed(Op, c.dtype(0))) return c.refuse("elements of another type");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  std::vector<std::int64_t> axes = ops::to_vector(attr.axes);
  if (attr.axes_are_input && c.has_input(ops::ReduceIn::kAxes)) {
    const Tensor* t = c.constant(ops::ReduceIn::kAxes);
    if (t == nullptr) return c.refuse("the axes are not constant");
    for (std::int64_t i = 0; i < t->size(); ++i) axes.push_back(element_as_int(*t, i));
  }
  if (axes.empty() && attr.noop_with_empty_axes) return c.refuse("reduces nothing");
  std::vector<bool> flags(x->size(), axes.empty());
  for (const std::int64_t axis : axes) flags[static_cast<std::size_t>(ops::normalize_axis(axis, x->size()))] = true;
  std::vector<Axes> groups = groups_of(*x, flags);
  if (Op == Reduce::product && c.dtype(0) == DataType::float32 && groups.size() > 1) {
    return c.refuse("the axes are not neighbours: products of parts leave float32's range sooner than the whole");
  }
  return std::make_unique<ReduceKernel>(Op, c.dtype(0), std::move(groups), c.node());
}

class ArgExtremeKernel : public Kernel {
 public:
  ArgExtremeKernel(DataType dtype, std::size_t axis, bool max, bool last) : dtype_(dtype), axis_(axis), max_(max), last_(last) {}
  std::string_view name() const override { return dtype_ == DataType::float32 ? "arg-extreme-f32" : "arg-extreme-typed"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    if (x[axis_] == 0 || x[axis_] > INT32_MAX) {
      fail(ErrorCode::runtime_failure, "axis {} of {} must have 1 to 2^31 - 1 elements", axis_, to_string(x));
    }
    const Lanes e{ops::product(x, 0, axis_), x[axis_], ops::product(x, axis_ + 1, x.size())};
    auto* y = c.out<std::int64_t>(0);
    if (dtype_ != DataType::float32) return arg_extreme(dtype_, max_, last_, c.input(0).data(), y, e);
    arg_extreme_f32(c.in<float>(0), y, e.outer, e.count, e.inner, max_, last_);
  }

 private:
  DataType dtype_;
  std::size_t axis_;
  bool max_, last_;
};

template <bool Max>
std::unique_ptr<Kernel> make_arg_extreme(LowerContext& c) {
  const auto attr = ops::parse<ops::ArgExtremeAttrs>(c);
  if (!has_arg_extreme(c.dtype(0))) return c.refuse("elements of another type");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(attr.axis, x->size()));
  return std::make_unique<ArgExtremeKernel>(c.dtype(0), axis, Max, attr.select_last_index);
}

struct TopKState : KernelState {
  TopK lane;
  std::int64_t outer = 0;
  std::size_t scratch = 0;  // bytes for each task
  std::int64_t inner() const { return lane.step; }
  std::int64_t rows() const { return outer * lane.step; }
};

// TopK with a constant K.
class TopKKernel : public Kernel {
 public:
  TopKKernel(DataType dtype, std::size_t axis, std::int64_t k, bool largest)
      : dtype_(dtype), axis_(axis), k_(k), largest_(largest) {}
  std::string_view name() const override { return dtype_ == DataType::float32 ? "top-k-f32" : "top-k-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<TopKState>();
    const Shape x = c.input_shape(0);
    state->lane = {dtype_, x[axis_], k_, ops::product(x, axis_ + 1, x.size()), largest_};
    state->outer = ops::product(x, 0, axis_);
    if (k_ < 0 || k_ > x[axis_] || x[axis_] > INT32_MAX) {
      fail(ErrorCode::runtime_failure, "k is {}; permitted: 0 to the axis' extent {}, which may be up to 2^31 - 1", k_, x[axis_]);
    }
    // The number of tasks is fixed here, because each has its own scratch.
    state->scratch = (top_k_bytes(state->lane) + 63) / 64 * 64;
    if (!by_columns(*state)) c.workspace_bytes = static_cast<std::size_t>(tasks(*state)) * state->scratch;
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const TopKState*>(c.state);
    if (s.rows() == 0 || k_ == 0) return;
    if (by_columns(s)) return run_columns(c, s);
    const std::int64_t parts = tasks(s);
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        void* const scratch = static_cast<char*>(c.workspace) + static_cast<std::size_t>(part) * s.scratch;
        const std::int64_t stop = s.rows() * (part + 1) / parts;
        for (std::int64_t r = s.rows() * part / parts; r < stop; ++r) one(c, s, r, scratch);
      }
    });
  }

 private:
  static constexpr std::int64_t kMostTasks = 16;
  static std::int64_t tasks(const TopKState& s) {
    const std::int64_t some = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, s.lane.n));
    return std::clamp<std::int64_t>((s.rows() + some - 1) / some, 1, kMostTasks);
  }

  bool by_columns(const TopKState& s) const { return dtype_ == DataType::float32 && s.inner() > 1 && k_ <= kMostTopColumns; }
  void run_columns(const KernelContext& c, const TopKState& s) const {
    constexpr std::int64_t kColumns = 16;
    const std::int64_t n = s.lane.n, inner = s.inner(), blocks = (inner + kColumns - 1) / kColumns;
    const std::int64_t some = std::max<std::int64_t>(1, 8192 / (n * std::min(inner, kColumns)));
    parallel_for(s.outer * blocks, some, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t outer = i / blocks, column = i % blocks * kColumns, to = outer * k_ * inner + column;
        top_k_columns_f32(c.in<float>(0) + outer * n * inner + column, n, inner, std::min(kColumns, inner - column), k_, largest_,
                          c.has_output(0) ? c.out<float>(0) + to : nullptr,
                          c.has_output(1) ? c.out<std::int64_t>(1) + to : nullptr);
      }
    });
  }

  void one(const KernelContext& c, const TopKState& s, std::int64_t row, void* scratch) const {
    const std::int64_t outer = row / s.inner() * s.inner(), column = row % s.inner(), to = outer * k_ + column;
    const auto bytes = [&](std::int64_t elements) { return byte_size(dtype_, elements); };
    top_k(s.lane, c.in<char>(0) + bytes(outer * s.lane.n + column), c.has_output(0) ? c.out<char>(0) + bytes(to) : nullptr,
          c.has_output(1) ? c.out<std::int64_t>(1) + to : nullptr, scratch);
  }

  DataType dtype_;
  std::size_t axis_;
  std::int64_t k_;
  bool largest_;
};

std::unique_ptr<Kernel> make_top_k(LowerContext& c) {
  const auto attr = ops::parse<ops::TopKAttrs>(c);
  if (!has_top_k(c.dtype(0))) return c.refuse("elements of another type");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(attr.axis, x->size()));
  std::int64_t k = attr.k;
  if (attr.k_is_input) {
    const Tensor* t = c.constant(ops::TopKIn::kK);
    if (t == nullptr || t->size() != 1) return c.refuse("k is not constant");
    k = element_as_int(*t, 0);
  }
  return std::make_unique<TopKKernel>(c.dtype(0), axis, k, attr.largest);
}

}  // namespace

void register_kernels_reduce(KernelTable& t) {
  t.add("", "ReduceMean", "reduce-f32", 10, make_reduce<Reduce::mean>);
  t.add("", "ReduceSum", "reduce-f32", 10, make_reduce<Reduce::sum>);
  t.add("", "ReduceMax", "reduce-f32", 10, make_reduce<Reduce::max>);
  t.add("", "ReduceMin", "reduce-f32", 10, make_reduce<Reduce::min>);
  t.add("", "ReduceSumSquare", "reduce-f32", 10, make_reduce<Reduce::sum_square>);
  t.add("", "ReduceL1", "reduce-f32", 10, make_reduce<Reduce::sum_abs>);
  t.add("", "ReduceL2", "reduce-f32", 10, make_reduce<Reduce::norm>);
  t.add("", "ReduceProd", "reduce-f32", 10, make_reduce<Reduce::product>);
  t.add("", "ReduceLogSum", "reduce-f32", 10, make_reduce<Reduce::log_sum>);
  t.add("", "ReduceLogSumExp", "reduce-f32", 10, make_reduce<Reduce::log_sum_exp>);
  t.add("", "ArgMax", "arg-extreme-f32", 10, make_arg_extreme<true>);
  t.add("", "ArgMin", "arg-extreme-f32", 10, make_arg_extreme<false>);
  t.add("", "TopK", "top-k-f32", 10, make_top_k);
}

}  // namespace sdx::cpu
