// Reductions over neighbouring axes in float32, some also in int32 and int64; ArgMax, ArgMin and TopK in float32.

#include "kernels/cpu/rows/reduce.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Reduce op, DataType dtype, std::size_t begin, std::size_t end)
      : op_(op), dtype_(dtype), begin_(begin), end_(end) {}
  std::string_view name() const override { return dtype_ == DataType::float32 ? "reduce-f32" : "reduce-int"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0 || x.size() < end_) {
      if (c.output(0).size() == 0) return;
      fail(ErrorCode::runtime_failure, "cannot reduce shape {} along axes {} to {}: there are no elements", to_string(x), begin_,
           end_ - 1);
    }
    const std::int64_t outer = ops::product(x, 0, begin_), axis = ops::product(x, begin_, end_);
    const std::int64_t inner = ops::product(x, end_, x.size());
    if (dtype_ == DataType::int32) {
      reduce_i32(op_, c.in<std::int32_t>(0), c.out<std::int32_t>(0), outer, axis, inner);
    } else if (dtype_ == DataType::int64) {
      reduce_i64(op_, c.in<std::int64_t>(0), c.out<std::int64_t>(0), outer, axis, inner);
    } else {
      reduce_f32(op_, c.in<float>(0), c.out<float>(0), outer, axis, inner);
    }
  }

 private:
  Reduce op_;
  DataType dtype_;
  std::size_t begin_, end_;  // the axes to reduce
};

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

template <Reduce Op>
std::unique_ptr<Kernel> make_reduce(LowerContext& c) {
  const auto attr = ops::parse<ops::ReduceAttrs>(c);
  constexpr bool kInts = Op == Reduce::sum || Op == Reduce::max || Op == Reduce::min;
  const bool ints = kInts && (c.dtype(0) == DataType::int32 || c.dtype(0) == DataType::int64);
  if (c.dtype(0) != DataType::float32 && !ints) return c.refuse("elements of another type");
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
  for (std::size_t i = 0; i < x->size(); ++i) {
    // What a reduction over nothing gives is the reference's business.
    const Dim& d = (*x)[i];
    if (flags[i] && (!d.is_const() || d.value() == 0)) return c.refuse("an extent to reduce is not known, or 0");
  }
  std::size_t begin = 0, end = x->size();
  while (begin < end && (!flags[begin] || is_one((*x)[begin]))) ++begin;
  while (end > begin && (!flags[end - 1] || is_one((*x)[end - 1]))) --end;
  for (std::size_t i = begin; i < end; ++i) {
    if (!flags[i] && !is_one((*x)[i])) return c.refuse("the axes are not neighbours");
  }
  return std::make_unique<ReduceKernel>(Op, c.dtype(0), begin, end);
}

class ArgExtremeKernel : public Kernel {
 public:
  ArgExtremeKernel(std::size_t axis, bool max, bool last) : axis_(axis), max_(max), last_(last) {}
  std::string_view name() const override { return "arg-extreme-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    if (x[axis_] == 0 || x[axis_] > INT32_MAX) {
      fail(ErrorCode::runtime_failure, "axis {} of {} must have 1 to 2^31 - 1 elements", axis_, to_string(x));
    }
    arg_extreme_f32(c.in<float>(0), c.out<std::int64_t>(0), ops::product(x, 0, axis_), x[axis_],
                    ops::product(x, axis_ + 1, x.size()), max_, last_);
  }

 private:
  std::size_t axis_;
  bool max_, last_;
};

template <bool Max>
std::unique_ptr<Kernel> make_arg_extreme(LowerContext& c) {
  const auto attr = ops::parse<ops::ArgExtremeAttrs>(c);
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(attr.axis, x->size()));
  return std::make_unique<ArgExtremeKernel>(axis, Max, attr.select_last_index);
}

struct TopKState : KernelState {
  std::int64_t rows = 0, n = 0;
};

// The last axis; K is a constant.
class TopKKernel : public Kernel {
 public:
  TopKKernel(std::int64_t k, bool largest) : k_(k), largest_(largest) {}
  std::string_view name() const override { return "top-k-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<TopKState>();
    const Shape x = c.input_shape(0);
    state->n = x.back();
    state->rows = ops::product(x, 0, x.size() - 1);
    if (k_ < 0 || k_ > state->n || state->n > INT32_MAX) {
      fail(ErrorCode::runtime_failure, "k is {}; permitted: 0 to the axis' extent {}, which may be up to 2^31 - 1", k_, state->n);
    }
    // Tasks have their own scratch, so their number is settled here.
    tasks(*state, c.workspace_bytes);
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const TopKState*>(c.state);
    if (s.rows == 0 || k_ == 0) return;
    std::size_t bytes = 0;
    const std::int64_t parts = tasks(s, bytes);
    auto* values = c.has_output(0) ? c.out<float>(0) : nullptr;
    auto* indices = c.has_output(1) ? c.out<std::int64_t>(1) : nullptr;
    const auto* x = c.in<float>(0);
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        auto* scratch = static_cast<std::uint64_t*>(c.workspace) + part * s.n;
        const std::int64_t stop = s.rows * (part + 1) / parts;
        for (std::int64_t r = s.rows * part / parts; r < stop; ++r) {
          top_k_f32(x + r * s.n, s.n, k_, largest_, values == nullptr ? nullptr : values + r * k_,
                    indices == nullptr ? nullptr : indices + r * k_, scratch);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kMostTasks = 16;
  static std::int64_t tasks(const TopKState& s, std::size_t& bytes) {
    const std::int64_t some = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, s.n));
    const std::int64_t parts = std::clamp<std::int64_t>((s.rows + some - 1) / some, 1, kMostTasks);
    bytes = static_cast<std::size_t>(parts * s.n) * sizeof(std::uint64_t);
    return parts;
  }
  std::int64_t k_;
  bool largest_;
};

std::unique_ptr<Kernel> make_top_k(LowerContext& c) {
  const auto attr = ops::parse<ops::TopKAttrs>(c);
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const std::int64_t axis = ops::normalize_axis(attr.axis, x->size());
  if (static_cast<std::size_t>(axis) + 1 != x->size()) return c.refuse("not the last axis");
  std::int64_t k = attr.k;
  if (attr.k_is_input) {
    const Tensor* t = c.constant(ops::TopKIn::kK);
    if (t == nullptr || t->size() != 1) return c.refuse("k is not constant");
    k = element_as_int(*t, 0);
  }
  return std::make_unique<TopKKernel>(k, attr.largest);
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
