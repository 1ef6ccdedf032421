// InstanceNormalization: ai.onnx 1, 6, 22 (bfloat16). GroupNormalization: ai.onnx 18 (scale per group), 21 (scale per channel).

#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

using enum GroupNormIn::Slot;

void check_vector(const SymShape* given, const Dim& expected, const char* name) {
  if (given == nullptr) return;
  if (given->size() == 1 && !((*given)[0].is_const() && expected.is_const() && (*given)[0].value() != expected.value())) return;
  fail(ErrorCode::invalid_model, "'{}' must have shape [{}], received {}", name, expected.str(), to_string(*given));
}

std::int64_t read_groups(const GroupNormAttrs& attr) {
  const std::int64_t groups = attr.num_groups;
  if (groups < 1) fail(ErrorCode::invalid_model, "attribute 'num_groups' is {}; it must be positive", groups);
  return groups;
}

void check_groups(std::int64_t channels, std::int64_t groups) {
  if (channels % groups != 0) {
    fail(ErrorCode::invalid_model, "X has {} channels, which is not a multiple of num_groups {}", channels, groups);
  }
}

template <bool kGroups>
void infer_norm(InferContext& c) {
  const SymShape* x = c.shape(kX);
  if (x == nullptr) return c.output(0, c.dtype(kX));
  if (x->size() < 2) c.fail("X must have rank 2 or more ([N, C, ...]), received shape {}", to_string(*x));
  Dim per = (*x)[1];
  if constexpr (kGroups) {
    const std::int64_t groups = read_groups(parse<GroupNormAttrs>(c));
    if (per.is_const()) check_groups(per.value(), groups);
    if (c.version() < 21) per = Dim(groups);
  }
  check_vector(c.shape(kScale), per, "scale");
  check_vector(c.shape(kBias), per, "bias");
  c.output(0, c.dtype(kX), *x);
}

template <class C>
void normalize(OpContext& c, std::int64_t groups, bool scale_per_group, Tensor& y) {
  const Tensor& x = c.input(kX);
  const std::int64_t inner = product(x.shape(), 2, x.rank());
  const std::int64_t channels = x.dim(1) / groups;  // in one group
  const double epsilon = static_cast<double>(parse<GroupNormAttrs>(c).epsilon);
  const FloatInput<C> in(x), scale(c.input(kScale)), bias(c.input(kBias));
  FloatOutput<C> out(y);
  parallel_for(x.dim(0) * groups, 1 + 16384 / (channels * inner + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      const Moments m = moments_of(in.data() + g * channels * inner, channels * inner);
      const double factor = 1 / std::sqrt(m.variance + epsilon);
      for (std::int64_t k = 0; k < channels; ++k) {
        const std::int64_t at = scale_per_group ? g % groups : g % groups * channels + k;
        const std::int64_t offset = (g * channels + k) * inner;
        scale_row(in.data() + offset, inner, m.mean, factor * static_cast<double>(scale[at]), static_cast<double>(bias[at]),
                  out.data() + offset);
      }
    }
  });
  out.store();
}

template <bool kGroups>
void run_norm(OpContext& c) {
  const Tensor& x = c.input(kX);
  if (x.rank() < 2) c.fail("X must have rank 2 or more ([N, C, ...]), received shape {}", to_string(x.shape()));
  const std::int64_t groups = kGroups ? read_groups(parse<GroupNormAttrs>(c)) : x.dim(1);
  if (kGroups) check_groups(x.dim(1), groups);
  const bool per_group = kGroups && c.version() < 21;
  const std::int64_t per = per_group ? groups : x.dim(1);
  for (std::size_t i = 1; i < 3; ++i) {
    if (c.input(i).size() != per) c.fail("input {} must have shape [{}], received {}", i, per, to_string(c.input(i).shape()));
  }
  Tensor& y = c.output(0, x.dtype(), x.shape());
  if (y.size() == 0) return;
  dispatch_compute(x.dtype(), c.node().op_type,
                   [&](auto tag) { normalize<typename decltype(tag)::type>(c, groups, per_group, y); });
}

OpDef def(const char* name, int since, const char* first, const char* bias) {
  return OpDef(name, since)
      .in(first, "T", types::floats)
      .in("scale", "T", types::floats)
      .in(bias, "T", types::floats)
      .out(name[0] == 'I' ? "output" : "Y", "T", types::floats)
      .attrs<GroupNormAttrs>();
}

}  // namespace

void register_group_norm(OpTable& t) {
  t.add(def("InstanceNormalization", 1, "input", "B").infer_with(infer_norm<false>).run_with(run_norm<false>));
  for (const int since : {18, 21}) {
    t.add(def("GroupNormalization", since, "X", "bias").infer_with(infer_norm<true>).run_with(run_norm<true>));
  }
}

}  // namespace sdx::ops
