// LayerNormalization: ai.onnx 17, and since 1 as exporters wrote it before (scale and Y may then differ from X in type).
// RMSNormalization: ai.onnx 23. SimplifiedLayerNormalization: since 1, in ai.onnx and com.microsoft, where it is common.

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

using enum LayerNormIn::Slot;

// The type of Mean and InvStdDev.
DataType stash_type(const LayerNormAttrs& attr) {
  const std::int64_t code = attr.stash_type;
  for (const DataType t : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::float64}) {
    if (code == static_cast<std::int64_t>(t)) return t;
  }
  fail(ErrorCode::invalid_model, "attribute 'stash_type' is {}; permitted: 1 (float), 10, 11, 16", code);
}

// X's shape with ones from `axis` on.
template <class S>
S statistics_shape(S x, std::int64_t axis) {
  for (auto i = static_cast<std::size_t>(axis); i < x.size(); ++i) x[i] = typename S::value_type(1);
  return x;
}

void infer_layer_norm(InferContext& c) {
  const auto attr = parse<LayerNormAttrs>(c);
  const DataType elem = c.dtype(kScale) != DataType::undefined ? c.dtype(kScale) : c.dtype(kX);
  const DataType stash = stash_type(attr);
  const SymShape* x = c.shape(kX);
  if (x == nullptr) {
    c.output(0, elem);
    for (std::size_t i = 1; i < c.num_outputs(); ++i) c.output(i, stash);
    return;
  }
  const std::int64_t axis = normalize_axis(attr.axis, x->size());
  c.output(0, elem, *x);
  for (std::size_t i = 1; i < c.num_outputs(); ++i) c.output(i, stash, statistics_shape(*x, axis));
}

void check_fits(const Tensor* t, const Shape& x, const char* name) {
  if (t == nullptr || broadcast_shapes(x, t->shape()) == x) return;
  fail(ErrorCode::runtime_failure, "'{}' has shape {}, which cannot be broadcast to X {}", name, to_string(t->shape()),
       to_string(x));
}

template <class C>
void normalize(OpContext& c, std::int64_t axis, bool center, Tensor& y, Tensor* mean_out, Tensor* inv_out) {
  const Tensor& x = c.input(kX);
  const Tensor* bias = center ? c.optional_input(kBias) : nullptr;
  const std::int64_t rows = product(x.shape(), 0, static_cast<std::size_t>(axis));
  const std::int64_t n = product(x.shape(), static_cast<std::size_t>(axis), x.rank());
  const double epsilon = static_cast<double>(parse<LayerNormAttrs>(c).epsilon);
  const FloatInput<C> in(x), scale(c.input(kScale)), shift(bias);
  FloatOutput<C> out(y);
  std::vector<double> means(static_cast<std::size_t>(rows)), inverses(static_cast<std::size_t>(rows));
  parallel_for(rows, 1 + 16384 / (n + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const C* row = in.data() + r * n;
      const Moments m = center ? moments_of(row, n) : Moments{0, mean_square(row, n)};
      const double inverse = 1 / std::sqrt(m.variance + epsilon);
      scale_row(row, n, m.mean, inverse, 0, out.data() + r * n);
      means[static_cast<std::size_t>(r)] = m.mean;
      inverses[static_cast<std::size_t>(r)] = inverse;
    }
  });
  const Shape bias_shape = bias == nullptr ? Shape{} : bias->shape();
  for_each_broadcast<2>({c.input(kScale).shape(), bias_shape}, x.shape(),
                        [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
                          for (std::int64_t i = 0; i < count; ++i) out[o + i] *= scale[at[0] + i * step[0]];
                          if (!shift) return;
                          for (std::int64_t i = 0; i < count; ++i) out[o + i] += shift[at[1] + i * step[1]];
                        });
  out.store();
  if (mean_out != nullptr) store_floats(means.data(), *mean_out);
  if (inv_out != nullptr) store_floats(inverses.data(), *inv_out);
}

template <bool kCenter>
void run_layer_norm(OpContext& c) {
  const auto attr = parse<LayerNormAttrs>(c);
  const Tensor& x = c.input(kX);
  const std::int64_t axis = normalize_axis(attr.axis, x.rank());
  check_fits(&c.input(kScale), x.shape(), "scale");
  if (kCenter) check_fits(c.optional_input(kBias), x.shape(), "B");
  const DataType stash = stash_type(attr);
  Tensor& y = c.output(0, c.input(kScale).dtype(), x.shape());
  const auto statistic = [&](std::size_t i) {
    return c.wants_output(i) ? &c.output(i, stash, statistics_shape(x.shape(), axis)) : nullptr;
  };
  Tensor* mean = kCenter ? statistic(1) : nullptr;
  Tensor* inverse = statistic(kCenter ? 2 : 1);
  dispatch_compute(x.dtype(), c.node().op_type,
                   [&](auto tag) { normalize<typename decltype(tag)::type>(c, axis, kCenter, y, mean, inverse); });
}

OpDef def(const char* domain, const char* name, int since, const char* scale_var, bool center) {
  OpDef d(domain, name, since);
  d.in("X", "T", types::floats).in("scale", scale_var, types::floats);
  if (center) d.in("B", scale_var, types::floats, Arity::optional);
  d.out("Y", scale_var, types::floats);
  if (center) d.out("Mean", "U", types::floats, Arity::optional);
  if (std::string_view(name) != "RMSNormalization") d.out("InvStdDev", "U", types::floats, Arity::optional);
  d.attrs<LayerNormAttrs>();
  return std::move(d).infer_with(infer_layer_norm).run_with(center ? run_layer_norm<true> : run_layer_norm<false>);
}

}  // namespace

void register_layer_norm(OpTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(def(domain, "LayerNormalization", 1, "V", true));
    t.add(def(domain, "SimplifiedLayerNormalization", 1, "V", false));
  }
  t.add(def("", "LayerNormalization", 17, "T", true));
  t.add(def("", "RMSNormalization", 23, "V", false));
}

}  // namespace sdx::ops
