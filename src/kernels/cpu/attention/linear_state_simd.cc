#include "kernels/cpu/attention/linear_state_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/linear_state_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Sums for keys and queries, changes, and a row: three vectors each and the broadcast ones fit the register file.
#if SDX_512_BITS
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif

std::int64_t columns_together() { return kVectors * lanes_f32(); }

// Whole vectors, or with kVectors = 1 the first `left` elements of one.
template <int kCount>
struct Columns {
  VF v[kCount];

  HWY_INLINE static Columns load(const float* p, std::int64_t left) {
    Columns c;
    if constexpr (kCount == 1) {
      c.v[0] = load_floats(p, left);
    } else {
      for (int i = 0; i < kCount; ++i) c.v[i] = hn::LoadU(DF(), p + i * lanes_f32());
    }
    return c;
  }
  HWY_INLINE void store(float* p, std::int64_t left) const {
    if constexpr (kCount == 1) {
      store_floats(v[0], p, left);
    } else {
      for (int i = 0; i < kCount; ++i) hn::StoreU(v[i], DF(), p + i * lanes_f32());
    }
  }
  HWY_INLINE static Columns zeros() {
    Columns c;
    for (int i = 0; i < kCount; ++i) c.v[i] = hn::Zero(DF());
    return c;
  }
  HWY_INLINE void add(const Columns& x, VF factor) {
    for (int i = 0; i < kCount; ++i) v[i] = hn::MulAdd(x.v[i], factor, v[i]);
  }
};

// While a row is changed by a token, it is multiplied by the next token's key and query.
template <int kCount>
HWY_NOINLINE void columns_of(const LinearHead& h, std::int64_t at, std::int64_t left) {
  using C = Columns<kCount>;
  const DF d;
  const float* from = h.from != nullptr ? h.from + at : nullptr;
  float* to = h.to + at;
  C known = C::zeros(), answers = C::zeros();
  if (from != nullptr) {
    for (std::int64_t i = 0; i < h.rows; ++i) {
      const C row = C::load(from + i * h.columns, left);
      known.add(row, hn::Set(d, h.k[i]));
      answers.add(row, hn::Set(d, h.q[i]));
    }
  }
  for (std::int64_t t = 0; t < h.tokens; ++t, from = to) {
    const float *k = h.k + t * h.key_row, *q = h.q + t * h.key_row, *next_k = k + h.key_row, *next_q = q + h.key_row;
    float product = 0.0F;  // of key and query
    for (std::int64_t i = 0; i < h.rows; ++i) product += k[i] * q[i];
    const VF decay = hn::Set(d, h.decay[t * h.gate_row]), rate = hn::Set(d, h.rate[t * h.gate_row]);
    const C value = C::load(h.v + t * h.value_row + at, left);
    C change = value, out = C::zeros();
    for (int i = 0; i < kCount; ++i) {
      if (h.corrects) change.v[i] = hn::NegMulAdd(decay, known.v[i], change.v[i]);
      change.v[i] = hn::Mul(rate, change.v[i]);
      out.v[i] = hn::MulAdd(hn::Set(d, product), change.v[i], hn::Mul(decay, answers.v[i]));
    }
    out.add(value, hn::Set(d, h.skip));
    out.store(h.out + t * h.out_row + at, left);
    const auto changed = [&](std::int64_t i) HWY_ATTR {
      C row = C::zeros();
      if (from != nullptr) {
        row = C::load(from + i * h.columns, left);
        for (int j = 0; j < kCount; ++j) row.v[j] = hn::Mul(row.v[j], decay);
      }
      row.add(change, hn::Set(d, k[i]));
      row.store(to + i * h.columns, left);
      return row;
    };
    if (t + 1 == h.tokens) {
      for (std::int64_t i = 0; i < h.rows; ++i) changed(i);
      return;
    }
    known = answers = C::zeros();
    for (std::int64_t i = 0; i < h.rows; ++i) {
      const C row = changed(i);
      known.add(row, hn::Set(d, next_k[i]));
      answers.add(row, hn::Set(d, next_q[i]));
    }
  }
}

void head(const LinearHead& h, std::int64_t first, std::int64_t last) {
  const std::int64_t wide = columns_together(), lanes = lanes_f32();
  for (; first + wide <= last; first += wide) columns_of<kVectors>(h, first, wide);
  for (; first < last; first += lanes) columns_of<1>(h, first, std::min(lanes, last - first));
}

void convolve(const float* const* rows, std::int64_t taps, const float* weights, const float* bias, std::int64_t channels,
              float* out) {
  for (std::int64_t j = 0; j < channels; j += lanes_f32()) {
    const std::int64_t left = channels - j;
    VF sum = bias != nullptr ? load_floats(bias + j, left) : hn::Zero(DF());
    for (std::int64_t i = 0; i < taps; ++i)
      sum = hn::MulAdd(load_floats(weights + i * channels + j, left), load_floats(rows[i] + j, left), sum);
    store_floats(sum, out + j, left);
  }
}

}  // namespace

const LinearStateKernels& linear_state_table() {
  static const LinearStateKernels table{columns_together, head, convolve};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const LinearStateKernels&, linear_state_kernels, linear_state_table)
#endif
