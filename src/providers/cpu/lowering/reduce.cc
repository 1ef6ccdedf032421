// Reductions in float32, some also in integers and float64; ArgMax, ArgMin and TopK in float32.

#include "kernels/cpu/rows/reduce.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "ops/evaluate.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

// Neighbouring axes [begin, end).
struct Axes {
  std::size_t begin, end;
};

// Axes that are not neighbours are reduced one group after the other, the last ones first: what is read as a whole is read in
// order, and what lies between is small.
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Reduce op, DataType dtype, std::vector<Axes> groups, Node node)
      : op_(op), dtype_(dtype), groups_(std::move(groups)), node_(std::move(node)) {}
  std::string_view name() const override { return dtype_ == DataType::float32 ? "reduce-f32" : "reduce-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    // Results of all groups but the last, of which each is no larger than the one before.
    Shape x = c.input_shape(0);
    std::size_t between = 0;
    for (std::size_t i = 0; i + 1 < groups_.size() && i < 2; ++i) between += rounded_bytes(reduced(x, groups_[i]));
    c.workspace_bytes = between;
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    Shape x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    if (c.input(0).size() == 0) return reduce_nothing(c);
    if (x.size() < groups_.front().end) {
      fail(ErrorCode::runtime_failure, "cannot reduce shape {} along axes {} to {}: it has fewer", to_string(x),
           groups_.back().begin, groups_.front().end - 1);
    }
    const void* from = c.input(0).data();
    auto* between = static_cast<char*>(c.workspace);
    std::size_t step = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Axes g = groups_[i];
      const std::int64_t outer = ops::product(x, 0, g.begin), axis = ops::product(x, g.begin, g.end);
      const std::int64_t inner = ops::product(x, g.end, x.size());
      const std::size_t bytes = rounded_bytes(reduced(x, g));
      void* to = i + 1 == groups_.size() ? c.output(0).mutable_data() : between + (i % 2) * step;
      if (i == 0) step = bytes;
      reduce(op_of(i), from, to, outer, axis, inner);
      from = to;
    }
  }

 private:
  // What a reduction over nothing gives is the reference's business.
  void reduce_nothing(const KernelContext& c) const {
    const std::vector<Value> made = ops::evaluate(node_, *ops::find(node_), c.inputs);
    ops::copy_all(made.at(0).tensor(), c.output(0));
  }
  std::size_t rounded_bytes(std::int64_t elements) const { return (byte_size(dtype_, elements) + 63) / 64 * 64; }
  // The number of elements of x without these axes, which get extent 1.
  static std::int64_t reduced(Shape& x, Axes g) {
    for (std::size_t i = g.begin; i < g.end; ++i) x[i] = 1;
    return ops::product(x, 0, x.size());
  }
  // Means of means, norms of norms and so on are those of all; squares are taken first, a logarithm last.
  Reduce op_of(std::size_t group) const {
    const bool first = group == 0, last = group + 1 == groups_.size();
    if (op_ == Reduce::log_sum && !last) return Reduce::sum;
    return op_ == Reduce::sum_square && !first ? Reduce::sum : op_;
  }
  void reduce(Reduce op, const void* x, void* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) const {
    if (dtype_ == DataType::float32) {
      reduce_f32(op, static_cast<const float*>(x), static_cast<float*>(y), outer, axis, inner);
    } else {
      reduce_typed(op, dtype_, x, y, outer, axis, inner);
    }
  }

  Reduce op_;
  DataType dtype_;
  std::vector<Axes> groups_;  // at least one; the last axes first
  Node node_;
};

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

// The axes to reduce as groups of neighbours, the last ones first. Axes of extent 1 separate nothing.
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
  if (Op == Reduce::product && groups.size() > 1) {
    return c.refuse("the axes are not neighbours: products of parts leave float32's range sooner than the whole");
  }
  return std::make_unique<ReduceKernel>(Op, c.dtype(0), std::move(groups), c.node());
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
  std::int64_t outer = 0, n = 0, inner = 0;
  std::int64_t rows() const { return outer * inner; }
};

// K is a constant.
class TopKKernel : public Kernel {
 public:
  TopKKernel(std::size_t axis, std::int64_t k, bool largest) : axis_(axis), k_(k), largest_(largest) {}
  std::string_view name() const override { return "top-k-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<TopKState>();
    const Shape x = c.input_shape(0);
    state->n = x[axis_];
    state->outer = ops::product(x, 0, axis_);
    state->inner = ops::product(x, axis_ + 1, x.size());
    if (k_ < 0 || k_ > state->n || state->n > INT32_MAX) {
      fail(ErrorCode::runtime_failure, "k is {}; permitted: 0 to the axis' extent {}, which may be up to 2^31 - 1", k_, state->n);
    }
    // Tasks have their own scratch, so their number is settled here.
    if (!by_columns(*state))
      c.workspace_bytes = static_cast<std::size_t>(tasks(*state) * scratch_words(*state)) * sizeof(std::uint64_t);
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const TopKState*>(c.state);
    if (s.rows() == 0 || k_ == 0) return;
    if (by_columns(s)) return run_columns(c, s);
    const std::int64_t parts = tasks(s);
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        auto* scratch = static_cast<std::uint64_t*>(c.workspace) + part * scratch_words(s);
        const std::int64_t stop = s.rows() * (part + 1) / parts;
        for (std::int64_t r = s.rows() * part / parts; r < stop; ++r) one(c, s, r, scratch);
      }
    });
  }

 private:
  static constexpr std::int64_t kMostTasks = 16;
  static std::int64_t tasks(const TopKState& s) {
    const std::int64_t some = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, s.n));
    return std::clamp<std::int64_t>((s.rows() + some - 1) / some, 1, kMostTasks);
  }
  // Ranks of a row; where its elements are not neighbours, copies of them and of what is found.
  static std::int64_t scratch_words(const TopKState& s) { return s.inner == 1 ? s.n : 3 * s.n; }

  bool by_columns(const TopKState& s) const { return s.inner > 1 && k_ <= kMostTopColumns; }
  void run_columns(const KernelContext& c, const TopKState& s) const {
    constexpr std::int64_t kColumns = 16;
    const std::int64_t blocks = (s.inner + kColumns - 1) / kColumns;
    const std::int64_t some = std::max<std::int64_t>(1, 8192 / (s.n * std::min(s.inner, kColumns)));
    parallel_for(s.outer * blocks, some, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t outer = i / blocks, column = i % blocks * kColumns, to = outer * k_ * s.inner + column;
        top_k_columns_f32(c.in<float>(0) + outer * s.n * s.inner + column, s.n, s.inner, std::min(kColumns, s.inner - column), k_,
                          largest_, c.has_output(0) ? c.out<float>(0) + to : nullptr,
                          c.has_output(1) ? c.out<std::int64_t>(1) + to : nullptr);
      }
    });
  }

  void one(const KernelContext& c, const TopKState& s, std::int64_t row, std::uint64_t* scratch) const {
    auto* values = c.has_output(0) ? c.out<float>(0) : nullptr;
    auto* indices = c.has_output(1) ? c.out<std::int64_t>(1) : nullptr;
    const auto* x = c.in<float>(0);
    if (s.inner == 1) {
      return top_k_f32(x + row * s.n, s.n, k_, largest_, values == nullptr ? nullptr : values + row * k_,
                       indices == nullptr ? nullptr : indices + row * k_, scratch);
    }
    auto* places = reinterpret_cast<std::int64_t*>(scratch + s.n);
    auto* elements = reinterpret_cast<float*>(scratch + 2 * s.n);
    const std::int64_t outer = row / s.inner, column = row % s.inner;
    x += outer * s.n * s.inner + column;
    for (std::int64_t i = 0; i < s.n; ++i) elements[i] = x[i * s.inner];
    top_k_f32(elements, s.n, k_, largest_, elements + s.n, places, scratch);
    for (std::int64_t i = 0; i < k_; ++i) {
      const std::int64_t to = (outer * k_ + i) * s.inner + column;
      if (values != nullptr) values[to] = elements[s.n + i];
      if (indices != nullptr) indices[to] = places[i];
    }
  }

  std::size_t axis_;
  std::int64_t k_;
  bool largest_;
};

std::unique_ptr<Kernel> make_top_k(LowerContext& c) {
  const auto attr = ops::parse<ops::TopKAttrs>(c);
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const auto axis = static_cast<std::size_t>(ops::normalize_axis(attr.axis, x->size()));
  std::int64_t k = attr.k;
  if (attr.k_is_input) {
    const Tensor* t = c.constant(ops::TopKIn::kK);
    if (t == nullptr || t->size() != 1) return c.refuse("k is not constant");
    k = element_as_int(*t, 0);
  }
  return std::make_unique<TopKKernel>(axis, k, attr.largest);
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
