// QLinearReduceMean, ReduceSumInteger: com.microsoft 1.

#include <algorithm>

#include "ops/op.h"
#include "ops/quant/quant_codec.h"
#include "ops/quant/quant_scalar.h"
#include "ops/reduce/reduction.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);

// QLinearReduceMean, ReduceSumInteger.
struct IntegerReduceAttrs {
  IntList axes;
  bool keepdims = true;

  void fields(auto& f, const OpId& op) {
    if (op.name == "ReduceSumInteger") {
      f.required("axes", axes);
    } else {
      f("axes", axes);
    }
    f("keepdims", keepdims);
  }
};

std::vector<bool> reduced_axes(const IntegerReduceAttrs& attr, std::size_t rank) {
  std::vector<bool> reduced(rank, attr.axes.empty());
  for (const std::int64_t a : normalize_axes(attr.axes, rank)) reduced[static_cast<std::size_t>(a)] = true;
  return reduced;
}

void infer_reduce(InferContext& c, DataType elem) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, elem);
  const auto attr = parse<IntegerReduceAttrs>(c);
  c.output(0, elem, reduced_shape(*x, reduced_axes(attr, x->size()), attr.keepdims));
}

void infer_mean(InferContext& c) { infer_reduce(c, c.dtype(0)); }
void infer_sum(InferContext& c) {
  infer_reduce(c, c.dtype(0) == DataType::uint8  ? DataType::uint32
                  : c.dtype(0) == DataType::int8 ? DataType::int32
                                                 : DataType::undefined);
}

// Integer sums over the reduced axes, and how many values go into each.
struct Sums {
  std::vector<std::int64_t> values;
  std::int64_t count = 1;
};

Sums sums_of(const Tensor& x, const std::vector<bool>& reduced, std::int64_t outputs) {
  Sums s{std::vector<std::int64_t>(static_cast<std::size_t>(outputs), 0)};
  std::vector<std::int64_t> steps(x.rank(), 0);
  std::int64_t stride = 1;
  for (std::size_t a = x.rank(); a-- > 0;) {
    if (reduced[a]) {
      s.count *= x.dim(a);
    } else {
      steps[a] = stride;
      stride *= x.dim(a);
    }
  }
  std::vector<std::int64_t> index(x.rank(), 0);
  std::int64_t at = 0;
  for (const std::int32_t v : decode_ints(x)) {
    s.values[static_cast<std::size_t>(at)] += v;
    for (std::size_t a = x.rank(); a-- > 0;) {
      at += steps[a];
      if (++index[a] < x.dim(a)) break;
      at -= steps[a] * x.dim(a);
      index[a] = 0;
    }
  }
  return s;
}

void run_mean(OpContext& c) {
  const Tensor& x = c.input(0);
  const auto attr = parse<IntegerReduceAttrs>(c);
  const std::vector<bool> reduced = reduced_axes(attr, x.rank());
  const QuantScalar from = quant_scalar(c, 1, 2, x.dtype());
  const QuantScalar to = quant_scalar(c, 3, 4, x.dtype());
  Tensor& y = c.output(0, x.dtype(), reduced_shape(x.shape(), reduced, attr.keepdims));
  if (y.size() == 0) return;
  const Sums sums = sums_of(x, reduced, y.size());
  if (sums.count == 0) c.fail("the mean of no values: shape {} has an empty reduced axis", to_string(x.shape()));
  const QuantRange range = quant_range(x.dtype());
  std::vector<std::int32_t> out(sums.values.size());
  const float scale = from.scale / (static_cast<float>(sums.count) * to.scale);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = requantize(static_cast<float>(sums.values[i] - sums.count * from.zero) * scale, to.zero, range);
  }
  encode_ints(x.dtype(), out.data(), 0, y.size(), y.mutable_data());
}

void run_sum(OpContext& c) {
  const Tensor& x = c.input(0);
  const auto attr = parse<IntegerReduceAttrs>(c);
  const std::vector<bool> reduced = reduced_axes(attr, x.rank());
  const DataType elem = x.dtype() == DataType::uint8 ? DataType::uint32 : DataType::int32;
  Tensor& y = c.output(0, elem, reduced_shape(x.shape(), reduced, attr.keepdims));
  const Sums sums = sums_of(x, reduced, y.size());
  auto* out = static_cast<std::uint32_t*>(y.mutable_data());  // wraps around in 32 bits, whatever the sign
  std::transform(sums.values.begin(), sums.values.end(), out, [](std::int64_t v) { return static_cast<std::uint32_t>(v); });
}

}  // namespace

void register_qlinear_reduce(OpTable& t) {
  OpDef mean("com.microsoft", "QLinearReduceMean", 1);
  mean.in("data", "T", kBytes).in("data_scale", "", bit(DataType::float32)).in("data_zero_point", "T", kBytes, Arity::optional);
  mean.in("reduced_scale", "", bit(DataType::float32)).in("reduced_zero_point", "T", kBytes, Arity::optional);
  mean.out("reduced", "T", kBytes).attrs<IntegerReduceAttrs>();
  t.add(std::move(mean).infer_with(infer_mean).run_with(run_mean));
  t.add(OpDef("com.microsoft", "ReduceSumInteger", 1)
            .in("data", "T1", kBytes)
            .out("reduced", "T2", set_of(DataType::int32, DataType::uint32))
            .attrs<IntegerReduceAttrs>()
            .infer_with(infer_sum)
            .run_with(run_sum));
}

}  // namespace sdx::ops
