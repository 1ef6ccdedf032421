#include "kernels/cpu/optimizer/update_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer/update_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// The rule's numbers, each in all lanes.
struct Rule {
  explicit Rule(const UpdateRule& r)
      : rate(set(r.rate)),
        beta1(set(r.beta1)),
        beta2(set(r.beta2)),
        rest1(set(1 - r.beta1)),
        rest2(set(1 - r.beta2)),
        epsilon(set(r.epsilon)),
        l2(set(r.l2)),
        before(set(r.before)),
        after(set(r.after)),
        root(set(r.root)),
        fresh(set(r.fresh)),
        scale(set(r.scale)) {}
  static VF set(float x) { return hn::Set(DF(), x); }
  VF rate, beta1, beta2, rest1, rest2, epsilon, l2, before, after, root, fresh, scale;
};

HWY_INLINE VF decayed_square(const Rule& r, VF state, VF g) {
  return hn::MulAdd(r.beta2, state, hn::Mul(hn::Mul(r.rest2, g), g));
}
HWY_INLINE VF over_root(VF x, VF squares, const Rule& r) { return hn::Div(x, hn::Add(hn::Sqrt(squares), r.epsilon)); }

// The amount that is subtracted from the weights. The states change in place.
template <UpdateKind kKind, bool kNesterov>
HWY_INLINE VF change(const Rule& r, VF g, VF& m, VF& v) {
  const DF d;
  if constexpr (kKind == UpdateKind::adam) {
    m = hn::MulAdd(r.beta1, m, hn::Mul(r.rest1, g));
    v = decayed_square(r, v, g);
    return hn::Div(hn::Mul(r.rate, m), hn::MulAdd(hn::Sqrt(v), r.root, r.epsilon));
  } else if constexpr (kKind == UpdateKind::momentum) {
    m = hn::MulAdd(r.beta1, m, hn::Mul(r.fresh, g));
    return hn::Mul(r.rate, kNesterov ? hn::MulAdd(r.beta1, m, g) : m);
  } else if constexpr (kKind == UpdateKind::rmsprop) {
    m = decayed_square(r, m, g);
    return hn::Mul(r.rate, over_root(g, m, r));
  } else if constexpr (kKind == UpdateKind::rmsprop_momentum) {
    m = decayed_square(r, m, g);
    v = hn::MulAdd(r.beta1, v, over_root(g, m, r));
    return hn::Mul(r.rate, v);
  } else if constexpr (kKind == UpdateKind::adagrad) {
    m = hn::MulAdd(g, g, m);
    return hn::Mul(r.rate, over_root(g, m, r));
  } else if constexpr (kKind == UpdateKind::lion) {
    const VF c = hn::MulAdd(r.beta1, m, hn::Mul(r.rest1, g));
    m = hn::MulAdd(r.beta2, m, hn::Mul(r.rest2, g));
    const VF zero = hn::Zero(d);
    // NaN stays one.
    return hn::IfThenElse(hn::Gt(c, zero), r.rate, hn::IfThenElse(hn::Lt(c, zero), hn::Neg(r.rate), hn::Mul(c, zero)));
  } else {
    return hn::Mul(r.rate, g);
  }
}

constexpr bool has_m(UpdateKind kind) { return kind != UpdateKind::sgd; }
constexpr bool has_v(UpdateKind kind) { return kind == UpdateKind::adam || kind == UpdateKind::rmsprop_momentum; }

template <UpdateKind kKind, bool kNesterov = false>
void update_loop(const UpdateRule& rule, const UpdateSlice& s, std::int64_t begin, std::int64_t end) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const Rule r(rule);
  const VF zero = hn::Zero(d);
  for (std::int64_t i = begin; i < end; i += lanes) {
    const std::int64_t left = end - i;
    const VF w0 = load_floats(s.w + i, left);
    const VF g = hn::MulAdd(r.l2, w0, hn::Mul(load_floats(s.g + i, left), r.scale));
    if (rule.clear) store_floats(zero, s.g + i, left);
    VF m = has_m(kKind) ? load_floats(s.m + i, left) : zero;
    VF v = has_v(kKind) ? load_floats(s.v + i, left) : zero;
    const VF w = hn::Sub(hn::Mul(w0, r.before), change<kKind, kNesterov>(r, g, m, v));
    store_floats(hn::Mul(w, r.after), s.w + i, left);
    if (has_m(kKind)) store_floats(m, s.m + i, left);
    if (has_v(kKind)) store_floats(v, s.v + i, left);
  }
}

void update(const UpdateRule& rule, const UpdateSlice& s, std::int64_t begin, std::int64_t end) {
  switch (rule.kind) {
    case UpdateKind::adam: return update_loop<UpdateKind::adam>(rule, s, begin, end);
    case UpdateKind::sgd: return update_loop<UpdateKind::sgd>(rule, s, begin, end);
    case UpdateKind::momentum:
      if (rule.nesterov) return update_loop<UpdateKind::momentum, true>(rule, s, begin, end);
      return update_loop<UpdateKind::momentum>(rule, s, begin, end);
    case UpdateKind::rmsprop: return update_loop<UpdateKind::rmsprop>(rule, s, begin, end);
    case UpdateKind::rmsprop_momentum: return update_loop<UpdateKind::rmsprop_momentum>(rule, s, begin, end);
    case UpdateKind::adagrad: return update_loop<UpdateKind::adagrad>(rule, s, begin, end);
    case UpdateKind::lion: return update_loop<UpdateKind::lion>(rule, s, begin, end);
  }
}

void accumulate(const float* from, float* to, std::int64_t n) {
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    store_floats(hn::Add(load_floats(to + i, n - i), load_floats(from + i, n - i)), to + i, n - i);
  }
}

double sum_of_squares(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr std::int64_t kBlock = 512;  // elements summed in float
  double total = 0;
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t end = at + kBlock < n ? at + kBlock : n;
    VF sum = hn::Zero(d);
    for (std::int64_t i = at; i < end; i += lanes) {
      const VF v = load_floats(x + i, end - i);
      sum = hn::MulAdd(v, v, sum);
    }
    total += static_cast<double>(sum_lanes(d, sum));
  }
  return total;
}

}  // namespace

const UpdateKernels& update_table() {
  static const UpdateKernels table{update, accumulate, sum_of_squares};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const UpdateKernels&, update_kernels, update_table)
#endif
