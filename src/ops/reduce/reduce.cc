// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, ReduceLogSumExp.
// ai.onnx 1, 11, 12, 13: `axes` is an attribute (ReduceSum: an input since 13); 18, 20, 28: an input.
// com.microsoft ReduceSumTraining: ReduceSum of 13.

#include <cmath>
#include <limits>
#include <optional>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/reduce/reduction.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// --- which axes --------------------------------------------------------------------------------------------------------

// Flags per axis; `axes` empty means all of them, or none with noop_with_empty_axes.
std::vector<bool> reduced_axes(const ReduceAttrs& attr, const std::vector<std::int64_t>& axes, std::size_t rank) {
  if (axes.empty()) return std::vector<bool>(rank, !attr.noop_with_empty_axes);
  std::vector<bool> flags(rank, false);
  // ONNX forbids naming an axis twice only implicitly, and files do it: it means the same as once.
  for (const std::int64_t axis : axes) {
    if (rank == 0 && (axis == 0 || axis == -1)) continue;
    flags[static_cast<std::size_t>(normalize_axis(axis, rank))] = true;
  }
  return flags;
}

// nullopt: not known yet.
std::optional<std::vector<std::int64_t>> known_axes(const InferContext& c, const ReduceAttrs& attr) {
  if (!attr.axes_are_input) return to_vector(attr.axes);
  if (!c.has_input(ReduceIn::kAxes)) return std::vector<std::int64_t>{};
  if (const Tensor* t = c.value(ReduceIn::kAxes)) return to_ints(*t);
  return std::nullopt;
}

// The shape when only the number of axes is known, or not even that. Of several, one may be listed twice.
void infer_unknown_axes(InferContext& c, const SymShape& in, bool keepdims) {
  if (keepdims) return c.output(0, c.dtype(0), SymShape(in.size(), Dim::unknown()));
  const SymShape* axes = c.shape(ReduceIn::kAxes);
  if (axes != nullptr && axes->size() == 1 && (*axes)[0] == Dim(1) && !in.empty()) {
    return c.output(0, c.dtype(0), SymShape(in.size() - 1, Dim::unknown()));
  }
  c.output(0, c.dtype(0));
}

void propagate_elements(InferContext& c) {
  const auto* in = c.sym(0);
  if (in == nullptr || in->empty()) return;
  const std::string& op = c.node().op_type;
  Dim total = (*in)[0];
  for (std::size_t i = 1; i < in->size(); ++i) {
    if (op == "ReduceSum") {
      total = total + (*in)[i];
    } else if (op == "ReduceProd") {
      total = total * (*in)[i];
    } else if (op == "ReduceMax") {
      total = max(total, (*in)[i]);
    } else if (op == "ReduceMin") {
      total = min(total, (*in)[i]);
    } else {
      return;
    }
  }
  if (in->size() == 1 && op != "ReduceSum" && op != "ReduceProd" && op != "ReduceMax" && op != "ReduceMin") return;
  c.output_sym(0, {total});
}

void infer_reduce(InferContext& c) {
  const auto attr = parse<ReduceAttrs>(c);
  const SymShape* in = c.shape(0);
  const auto axes = known_axes(c, attr);
  if (in == nullptr) return c.output(0, c.dtype(0));
  if (!axes) return infer_unknown_axes(c, *in, attr.keepdims);
  const std::vector<bool> flags = reduced_axes(attr, *axes, in->size());
  c.output(0, c.dtype(0), reduced_shape(*in, flags, attr.keepdims));
  if (in->size() == 1 && flags[0]) propagate_elements(c);
}

// --- reducers ----------------------------------------------------------------------------------------------------------
// Floats accumulate in double; integers in 64 bits, wrapping.

template <class T>
using Wide =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;

template <class T>
Wide<T> widen(T x) {
  return static_cast<Wide<T>>(static_cast<ComputeType<T>>(x));
}
template <class T>
double real(T x) {
  return static_cast<double>(static_cast<ComputeType<T>>(x));
}
template <class W>
W wrap_add(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class W>
W wrap_mul(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}
template <class W>
W magnitude(W a) {
  if constexpr (std::is_same_v<W, double>) {
    return std::fabs(a);
  } else if constexpr (std::is_signed_v<W>) {
    return a < 0 ? static_cast<W>(std::uint64_t{0} - static_cast<std::uint64_t>(a)) : a;
  } else {
    return a;
  }
}
template <class T, class W>
T narrow(W v) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<W>) {
    return static_cast<T>(v);
  } else {
    return saturating_cast<T>(static_cast<double>(v));
  }
}

template <class T>
struct Sum {
  using State = Wide<T>;
  State init() const { return 0; }
  void add(State& s, T x) const { s = wrap_add(s, widen(x)); }
  T finish(const State& s, std::int64_t) const { return narrow<T>(s); }
};

template <class T>
struct Mean : Sum<T> {
  T finish(const Wide<T>& s, std::int64_t n) const {
    return n == 0 ? T(0) : narrow<T>(s / static_cast<Wide<T>>(n));  // ONNX leaves the mean of nothing open; ONNX Runtime has 0
  }
};

template <class T>
struct SumSquare : Sum<T> {
  void add(Wide<T>& s, T x) const { s = wrap_add(s, wrap_mul(widen(x), widen(x))); }
};

template <class T>
struct L1 : Sum<T> {
  void add(Wide<T>& s, T x) const { s = wrap_add(s, magnitude(widen(x))); }
};

template <class T>
struct L2 {
  using State = double;
  State init() const { return 0; }
  void add(State& s, T x) const { s += real(x) * real(x); }
  T finish(const State& s, std::int64_t) const { return narrow<T>(std::sqrt(s)); }
};

template <class T>
struct LogSum {
  using State = double;
  State init() const { return 0; }
  void add(State& s, T x) const { s += real(x); }
  T finish(const State& s, std::int64_t) const { return narrow<T>(std::log(s)); }
};

// sum = sum of exp(x - top): rescaled whenever a larger element comes along, so that nothing overflows.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class T>
struct LogSumExp {
  struct State {
    double top, sum;
  };
  State init() const { return {-std::numeric_limits<double>::infinity(), 0}; }
  void add(State& s, T value) const {
    const double x = real(value);
    if (x == s.top) {  // also two infinities, whose difference is NaN
      s.sum += 1;
    } else if (x > s.top) {
      s.sum = s.sum * std::exp(s.top - x) + 1;
      s.top = x;
    } else {
      s.sum += std::exp(x - s.top);  // NaN comes here and stays
    }
  }
  T finish(const State& s, std::int64_t) const { return narrow<T>(s.top + std::log(s.sum)); }
};

template <class T>
struct Prod {
  using State = Wide<T>;
  State init() const { return 1; }
  void add(State& s, T x) const { s = wrap_mul(s, widen(x)); }
  T finish(const State& s, std::int64_t) const { return narrow<T>(s); }
};

// NaN wins, as in numpy. Nothing at all gives the type's lowest or highest value, infinite if it can be.
template <class T, bool kMax>
struct Extreme {
  using State = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, ComputeType<T>>;
  State init() const {
    using L = std::numeric_limits<State>;
    if constexpr (L::has_infinity) return kMax ? -L::infinity() : L::infinity();
    return kMax ? L::lowest() : L::max();
  }
  void add(State& s, T value) const {
    const State x = static_cast<State>(value);
    s = (kMax ? x > s : x < s) || x != x ? x : s;
  }
  T finish(const State& s, std::int64_t) const { return static_cast<T>(s); }
};
template <class T>
using Max = Extreme<T, true>;
template <class T>
using Min = Extreme<T, false>;

using ArithmeticTypes = NumericTypes;
using OrderedTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                              std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;

template <template <class> class Reducer, class List>
void run_reduce(OpContext& c) {
  const auto attr = parse<ReduceAttrs>(c);
  const Tensor& in = c.input(0);
  std::vector<std::int64_t> axes = to_vector(attr.axes);
  if (const Tensor* t = attr.axes_are_input ? c.optional_input(ReduceIn::kAxes) : nullptr) axes = to_ints(*t);
  const std::vector<bool> flags = reduced_axes(attr, axes, in.rank());
  Tensor& out = c.output(0, in.dtype(), reduced_shape(in.shape(), flags, attr.keepdims));
  const ReductionPlan plan = plan_reduction(in.shape(), flags);
  dispatch(in.dtype(), List{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce(plan, static_cast<const T*>(in.data()), static_cast<T*>(out.mutable_data()), Reducer<T>{}, c.stop());
  });
}

template <template <class> class Reducer, class List = ArithmeticTypes>
void add(OpTable& t, const char* name, TypeSet set) {
  for (const int since : {1, ReduceAttrs::axes_input_since(name)}) {
    OpDef def(name, since);
    def.in("data", "T", set).out("reduced", "T", set).attrs<ReduceAttrs>();
    if (since > 1) def.in("axes", "", types::int64, Arity::optional);
    t.add(std::move(def).infer_with(infer_reduce).run_with(run_reduce<Reducer, List>));
  }
}

}  // namespace

void register_reduce(OpTable& t) {
  add<Sum>(t, "ReduceSum", types::numeric);
  t.add(OpDef("com.microsoft", "ReduceSumTraining", 1)
            .in("data", "T", types::numeric)
            .in("axes", "", types::int64)
            .out("reduced", "T", types::numeric)
            .attrs<ReduceAttrs>()
            .infer_with(infer_reduce)
            .run_with(run_reduce<Sum, ArithmeticTypes>));
  add<Mean>(t, "ReduceMean", types::numeric);
  add<Max, OrderedTypes>(t, "ReduceMax", types::numeric | types::boolean);
  add<Min, OrderedTypes>(t, "ReduceMin", types::numeric | types::boolean);
  add<Prod>(t, "ReduceProd", types::numeric);
  add<L1>(t, "ReduceL1", types::numeric);
  add<L2>(t, "ReduceL2", types::numeric);
  add<SumSquare>(t, "ReduceSumSquare", types::numeric);
  add<LogSum>(t, "ReduceLogSum", types::numeric);
  add<LogSumExp>(t, "ReduceLogSumExp", types::numeric);
}

}  // namespace sdx::ops
