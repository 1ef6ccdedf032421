// Range: ai.onnx 11, 27 (16-bit floats, computed in float: `stash_type`). com.microsoft 1.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct RangeAttrs {
  void fields(auto& f) { f.unread("stash_type", AttrKind::i); }
};

using RangeTypes = TypeList<float, double, Float16, BFloat16, std::int16_t, std::int32_t, std::int64_t>;

// max(ceil((limit - start) / delta), 0), without overflow: the distance between two int64 fits uint64.
std::int64_t int_count(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta == 0) fail(ErrorCode::runtime_failure, "delta must not be zero");
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  const auto unsigned_of = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t distance = delta > 0 ? unsigned_of(limit) - unsigned_of(start) : unsigned_of(start) - unsigned_of(limit);
  const std::uint64_t step = delta > 0 ? unsigned_of(delta) : std::uint64_t{0} - unsigned_of(delta);
  const std::uint64_t count = (distance - 1) / step + 1;
  if (count > (std::uint64_t{1} << 62)) fail(ErrorCode::out_of_memory, "{} elements do not fit in memory", count);
  return static_cast<std::int64_t>(count);
}

std::int64_t float_count(double start, double limit, double delta) {
  if (delta == 0) fail(ErrorCode::runtime_failure, "delta must not be zero");
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p62)) fail(ErrorCode::out_of_memory, "from {} to {} by {} are too many elements", start, limit, delta);
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

template <class T>
std::int64_t count_of(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    return int_count(start, limit, delta);
  } else {
    const auto wide = [](T v) { return static_cast<double>(static_cast<ComputeType<T>>(v)); };
    return float_count(wide(start), wide(limit), wide(delta));
  }
}

template <class T>
T only(const Tensor& t, const char* what) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "{} must be one number, received {}", what, t.type_string());
  return *static_cast<const T*>(t.data());
}

// A missing delta (com.microsoft) is 1.
template <class T>
T delta_of(const Tensor* delta) {
  return delta != nullptr ? only<T>(*delta, "delta") : T(1.0F);
}

std::int64_t count_from(const Tensor& start, const Tensor& limit, const Tensor* delta) {
  std::int64_t count = 0;
  if (start.dtype() != limit.dtype() || (delta != nullptr && start.dtype() != delta->dtype())) {
    fail(ErrorCode::invalid_model, "start, limit and delta must have one type, received {}, {} and {}", start.type_string(),
         limit.type_string(), delta != nullptr ? delta->type_string() : "none");
  }
  dispatch(start.dtype(), RangeTypes{}, "Range", [&](auto tag) {
    using T = typename decltype(tag)::type;
    count = count_of<T>(only<T>(start, "start"), only<T>(limit, "limit"), delta_of<T>(delta));
  });
  return count;
}

// A plain symbol is the extent of an axis and thus never negative.
bool never_negative(const Dim& d) {
  const std::string name = d.symbol_name();
  return (d.is_const() && d.value() >= 0) || (!name.empty() && name.find('(') == std::string::npos);
}

Dim symbolic_count(const Dim& start, const Dim& limit, const Dim& delta) {
  if (!delta.is_const() || delta.value() == 0) return Dim::unknown();
  const Dim count = delta.value() > 0 ? ceil_div(limit - start, delta) : ceil_div(start - limit, Dim(0) - delta);
  return never_negative(count) ? count : max(Dim(0), count);
}

void infer_range(InferContext& c) {
  DataType elem = c.dtype(0);
  for (std::size_t i = 1; i < 3 && elem == DataType::undefined; ++i) elem = c.dtype(i);
  Dim count;
  if (!c.has_input(2)) {
    if (c.value(0) != nullptr && c.value(1) != nullptr) count = count_from(*c.value(0), *c.value(1), nullptr);
  } else if (c.value(0) != nullptr && c.value(1) != nullptr && c.value(2) != nullptr) {
    count = count_from(*c.value(0), *c.value(1), c.value(2));
  } else if (c.sym(0) != nullptr && c.sym(1) != nullptr && c.sym(2) != nullptr && c.sym(0)->size() == 1 &&
             c.sym(1)->size() == 1 && c.sym(2)->size() == 1) {
    count = symbolic_count((*c.sym(0))[0], (*c.sym(1))[0], (*c.sym(2))[0]);
  }
  c.output(0, elem, SymShape{count});
  // Elements above are worth knowing only for lists as short as shapes are.
  if (!count.is_const() || count.value() > 64 || c.sym(0) == nullptr || c.sym(2) == nullptr) return;
  std::vector<Dim> elements;
  for (std::int64_t i = 0; i < count.value(); ++i) elements.push_back((*c.sym(0))[0] + Dim(i) * (*c.sym(2))[0]);
  c.output_sym(0, std::move(elements));
}

// start + i * delta: no error adds up. Integers cannot overflow, as all elements lie between start and limit; the product is
// computed without sign nevertheless.
template <class T>
void fill(T start, T delta, Tensor& out) {
  auto* y = static_cast<T*>(out.mutable_data());
  const std::int64_t n = out.size();
  parallel_for(n, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_integral_v<T>) {
      const auto first = static_cast<std::uint64_t>(start);
      const auto step = static_cast<std::uint64_t>(delta);
      for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(first + static_cast<std::uint64_t>(i) * step);
    } else {
      const auto first = static_cast<double>(static_cast<ComputeType<T>>(start));
      const auto step = static_cast<double>(static_cast<ComputeType<T>>(delta));
      for (std::int64_t i = begin; i < end; ++i) y[i] = saturating_cast<T>(first + static_cast<double>(i) * step);
    }
  });
}

void run_range(OpContext& c) {
  const Tensor& start = c.input(0);
  const Tensor* delta = c.optional_input(2);
  const std::int64_t count = count_from(start, c.input(1), delta);
  Tensor& out = c.output(0, start.dtype(), {count});
  dispatch(start.dtype(), RangeTypes{}, "Range", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(only<T>(start, "start"), delta_of<T>(delta), out);
  });
}

}  // namespace

void register_range(OpTable& t) {
  const TypeSet set = types::floats | set_of(DataType::int16, DataType::int32, DataType::int64);
  t.add(OpDef("Range", 11)
            .in("start limit delta", "T", set)
            .out("output", "T", set)
            .attrs<RangeAttrs>()
            .infer_with(infer_range)
            .run_with(run_range));
  t.add(OpDef("com.microsoft", "Range", 1)
            .in("start limit", "T", set)
            .in("delta", "T", set, Arity::optional)
            .out("Y", "T", set)
            .infer_with(infer_range)
            .run_with(run_range));
}

}  // namespace sdx::ops
