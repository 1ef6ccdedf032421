#include "kernels/cpu/conv/plain/conv_simd.h"

#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/plain/conv_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kMaxColumns = 256;

// Copies n floats; may write (and, before `end`, read) up to a vector more.
HWY_INLINE void copy_run(const float* src, const float* end, float* dst, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i < n && src + i + lanes <= end; i += lanes) hn::StoreU(hn::LoadU(d, src + i), d, dst + i);
  for (; i < n; ++i) dst[i] = src[i];
}

// dst[i] = src[i * stride] in whole vectors, stride 2 or 4, without reading at or after `end`. Returns the first index not done.
HWY_INLINE std::int64_t copy_strided(const float* src, std::int64_t stride, std::int64_t from, std::int64_t to, const float* end,
                                     float* dst) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF v0, v1, v2, v3;
  std::int64_t i = from;
  for (; i + lanes <= to && src + stride * (i + lanes) <= end; i += lanes) {
    if (stride == 2) {
      hn::LoadInterleaved2(d, src + 2 * i, v0, v1);
    } else {
      hn::LoadInterleaved4(d, src + 4 * i, v0, v1, v2, v3);
    }
    hn::StoreU(v0, d, dst + i);
  }
  return i;
}

// Indices i in [0, n) with 0 <= first + i * stride < limit.
struct Range {
  std::int64_t begin, end;
};
HWY_INLINE Range inside(std::int64_t first, std::int64_t stride, std::int64_t limit, std::int64_t n) {
  std::int64_t b = first >= 0 ? 0 : (-first + stride - 1) / stride;
  std::int64_t e = first >= limit ? 0 : (limit - first + stride - 1) / stride;
  b = b > n ? n : b;
  e = e > n ? n : e;
  return {b, e < b ? b : e};
}

// One row of the patch matrix: kernel element (kz, ky, kx) of channel plane `x` over output positions [n0, n0 + nb).
HWY_INLINE void patch_row(const ConvShape& s, const float* x, std::int64_t kz, std::int64_t ky, std::int64_t kx, std::int64_t n0,
                          std::int64_t nb, float* HWY_RESTRICT row) {
  const std::int64_t w = s.in[2];
  const float* end = x + s.in[0] * s.in[1] * w;
  const std::int64_t stride = s.stride[2];
  // Computed once: its divisions are most of the work if rows are short.
  const Range whole = inside(kx * s.dilation[2] - s.pad[2], stride, w, s.out[2]);
  std::int64_t ox = n0 % s.out[2];
  std::int64_t oy = n0 / s.out[2] % s.out[1];
  std::int64_t oz = n0 / (s.out[2] * s.out[1]);
  for (std::int64_t done = 0; done < nb;) {
    const std::int64_t len = nb - done < s.out[2] - ox ? nb - done : s.out[2] - ox;
    const std::int64_t iz = oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky * s.dilation[1];
    float* dst = row + done;
    if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
      for (std::int64_t i = 0; i < len; ++i) dst[i] = 0.0F;
    } else {
      const float* src = x + (iz * s.in[1] + iy) * w;
      const std::int64_t first = ox * stride - s.pad[2] + kx * s.dilation[2];
      const Range r = len == s.out[2] ? whole : inside(first, stride, w, len);
      for (std::int64_t i = 0; i < r.begin; ++i) dst[i] = 0.0F;
      if (stride == 1) {
        copy_run(src + first + r.begin, end, dst + r.begin, r.end - r.begin);
      } else {
        std::int64_t i = r.begin;
        if (stride == 2 || stride == 4) i = copy_strided(src + first, stride, i, r.end, end, dst);
        for (; i < r.end; ++i) dst[i] = src[first + i * stride];
      }
      for (std::int64_t i = r.end; i < len; ++i) dst[i] = 0.0F;
    }
    done += len;
    ox = 0;
    if (++oy == s.out[1]) {
      oy = 0;
      ++oz;
    }
  }
}

// Rows [k, k + 4) of the patch matrix where they are the four columns of windows side by side, as in an image cut into patches of
// 4 pixels: each vector of input is read once for all four. Taken one by one, gathering took a fifth of such a convolution.
bool is_cut_in_fours(const ConvShape& s) {
  return s.kernel[2] == 4 && s.stride[2] == 4 && s.dilation[2] == 1 && s.pad[2] == 0 && s.out[2] * 4 <= s.in[2];
}

void patch_fours(const ConvShape& s, const float* x, std::int64_t kz, std::int64_t ky, std::int64_t n0, std::int64_t nb,
                 float* rows, std::int64_t ld) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t ox = n0 % s.out[2], oy = n0 / s.out[2] % s.out[1], oz = n0 / (s.out[2] * s.out[1]);
  for (std::int64_t done = 0; done < nb;) {
    const std::int64_t len = nb - done < s.out[2] - ox ? nb - done : s.out[2] - ox;
    const std::int64_t iz = oz * s.stride[0] - s.pad[0] + kz * s.dilation[0];
    const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky * s.dilation[1];
    const bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
    const float* src = inside ? x + (iz * s.in[1] + iy) * s.in[2] + 4 * ox : nullptr;
    float* dst = rows + done;
    std::int64_t i = 0;
    for (; i + lanes <= len; i += lanes) {
      VF v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
      if (inside) hn::LoadInterleaved4(d, src + 4 * i, v0, v1, v2, v3);
      hn::StoreU(v0, d, dst + i);
      hn::StoreU(v1, d, dst + ld + i);
      hn::StoreU(v2, d, dst + 2 * ld + i);
      hn::StoreU(v3, d, dst + 3 * ld + i);
    }
    for (; i < len; ++i) {
      for (std::int64_t kx = 0; kx < 4; ++kx) dst[kx * ld + i] = inside ? src[4 * i + kx] : 0.0F;
    }
    done += len;
    ox = 0;
    if (++oy == s.out[1]) {
      oy = 0;
      ++oz;
    }
  }
}

// A row of the patch matrix into its place in each panel. Zeros follow the row.
HWY_INLINE void put_row(float* row, std::int64_t nb, std::int64_t k, std::int64_t kc, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), nr = 2 * lanes;
  for (std::int64_t i = 0; i < nr; i += lanes) hn::StoreU(hn::Zero(d), d, row + nb + i);
  for (std::int64_t j = 0; j < nb; j += nr) {
    float* panel = out + j * kc + k * nr;
    hn::StoreU(hn::LoadU(d, row + j), d, panel);
    hn::StoreU(hn::LoadU(d, row + j + lanes), d, panel + lanes);
  }
}

void patches(const ConvShape& s, const float* x, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  constexpr std::int64_t kRow = kMaxColumns + 4 * kMaxF32Lanes;
  const std::int64_t plane = s.in[0] * s.in[1] * s.in[2];
  HWY_ALIGN float rows[4 * kRow];
  const bool fours = is_cut_in_fours(s);
  std::int64_t kx = k0 % s.kernel[2];
  std::int64_t ky = k0 / s.kernel[2] % s.kernel[1];
  std::int64_t kz = k0 / (s.kernel[2] * s.kernel[1]) % s.kernel[0];
  const float* channel = x + k0 / (s.kernel[2] * s.kernel[1] * s.kernel[0]) * plane;
  for (std::int64_t k = 0; k < kc; ++k) {
    if (fours && kx == 0 && k + 4 <= kc) {
      patch_fours(s, channel, kz, ky, n0, nb, rows, kRow);
      for (int i = 0; i < 4; ++i) put_row(rows + i * kRow, nb, k + i, kc, out);
      k += 3;
      kx = 3;
    } else {
      patch_row(s, channel, kz, ky, kx, n0, nb, rows);
      put_row(rows, nb, k, kc, out);
    }
    if (++kx < s.kernel[2]) continue;
    kx = 0;
    if (++ky < s.kernel[1]) continue;
    ky = 0;
    if (++kz < s.kernel[0]) continue;
    kz = 0;
    channel += plane;
  }
}

void taps(const ConvTap* list, std::int64_t count, float bias, const float* residual, const UnarySpec& act, float* y,
          std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF vb = hn::Set(d, bias);
  const bool do_relu = act.op == Unary::relu;
  const bool do_clip = act.op == Unary::clip;
  const VF lo = hn::Set(d, act.a);
  const VF hi = hn::Set(d, act.b);
  // The bias comes last: added first, it would cost every tap the rounding error of its own magnitude.
  const auto finish = [&](VF v, std::int64_t at, std::int64_t left) HWY_ATTR {
    v = hn::Add(v, vb);
    if (residual != nullptr) v = hn::Add(v, left >= lanes ? hn::LoadU(d, residual + at) : load_tail(d, residual + at, left));
    if (do_relu) v = relu(v);
    if (do_clip) v = clip(v, lo, hi);
    if (left >= lanes) {
      hn::StoreU(v, d, y + at);
    } else {
      store_tail(v, d, y + at, left);
    }
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    VF a0 = hn::Zero(d), a1 = hn::Zero(d), a2 = hn::Zero(d), a3 = hn::Zero(d);
    for (std::int64_t t = 0; t < count; ++t) {
      const VF w = hn::Set(d, list[t].weight);
      const float* p = list[t].row + i;
      a0 = hn::MulAdd(w, hn::LoadU(d, p), a0);
      a1 = hn::MulAdd(w, hn::LoadU(d, p + lanes), a1);
      a2 = hn::MulAdd(w, hn::LoadU(d, p + 2 * lanes), a2);
      a3 = hn::MulAdd(w, hn::LoadU(d, p + 3 * lanes), a3);
    }
    finish(a0, i, lanes);
    finish(a1, i + lanes, lanes);
    finish(a2, i + 2 * lanes, lanes);
    finish(a3, i + 3 * lanes, lanes);
  }
  for (; i < n; i += lanes) {
    VF a = hn::Zero(d);
    for (std::int64_t t = 0; t < count; ++t) {
      a = hn::MulAdd(hn::Set(d, list[t].weight), hn::LoadU(d, list[t].row + i), a);
    }
    finish(a, i, n - i);
  }
  if (act.op != Unary::none && !do_relu && !do_clip) elementwise_kernels().unary(act, y, y, n);
}

// All phases of the indices [from, end) in whole vectors, the last of which may overlap the one before; returns the first index
// not done. Every index lies within the row in all phases. Stride 2 or 4.
HWY_INLINE std::int64_t split_vectors(const float* row, std::int64_t pad, std::int64_t stride, std::int64_t from,
                                      std::int64_t end, std::int64_t phase_width, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  if (end - from < lanes) return from;
  VF v0, v1, v2, v3;
  for (std::int64_t next = from; next < end; next += lanes) {
    const std::int64_t q = next + lanes <= end ? next : end - lanes;
    const float* src = row + stride * q - pad;
    float* to = out + q;
    if (stride == 2) {
#if SDX_512_BITS
      // One permutation each, where LoadInterleaved2 takes several.
      const VF low = hn::LoadU(d, src), high = hn::LoadU(d, src + lanes);
      v0 = hn::ConcatEven(d, high, low);
      v1 = hn::ConcatOdd(d, high, low);
#else
      hn::LoadInterleaved2(d, src, v0, v1);
#endif
    } else {
      hn::LoadInterleaved4(d, src, v0, v1, v2, v3);
      hn::StoreU(v2, d, to + 2 * phase_width);
      hn::StoreU(v3, d, to + 3 * phase_width);
    }
    hn::StoreU(v0, d, to);
    hn::StoreU(v1, d, to + phase_width);
  }
  return end;
}

// Stride 1, in whole vectors: elements written past the row's end belong to the next row, which is split later.
void shift_row(const float* row, std::int64_t pad, const Range& r, std::int64_t phase_width, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF zero = hn::Zero(d);
  for (std::int64_t i = 0; i < r.begin; i += lanes) hn::StoreU(zero, d, out + i);
  const float* src = row - pad;
  std::int64_t i = r.begin;
  for (; i + lanes <= r.end; i += lanes) hn::StoreU(hn::LoadU(d, src + i), d, out + i);
  if (i < r.end && r.end - r.begin >= lanes) {
    hn::StoreU(hn::LoadU(d, src + r.end - lanes), d, out + r.end - lanes);
    i = r.end;
  }
  for (; i < r.end; ++i) out[i] = src[i];
  for (i = r.end; i < phase_width; i += lanes) hn::StoreU(zero, d, out + i);
}

constexpr std::int64_t kMaxPhases = 8;  // whose ranges are computed once for all rows

void fill_zeros(float* out, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Zero(d), d, out + i);
  for (; i < n; ++i) out[i] = 0.0F;
}

// Indices of `all` lie within the row in every phase.
void split_row(const float* row, std::int64_t width, std::int64_t pad, std::int64_t stride, const Range* ranges, const Range& all,
               std::int64_t phase_width, float* out) {
  fill_zeros(out, stride * phase_width);
  const bool vectors = stride == 2 || stride == 4;
  const std::int64_t done = vectors ? split_vectors(row, pad, stride, all.begin, all.end, phase_width, out) : all.begin;
  for (std::int64_t p = 0; p < stride; ++p) {
    float* dst = out + p * phase_width;
    const std::int64_t first = p - pad;
    const Range r = p < kMaxPhases ? ranges[p] : inside(first, stride, width, phase_width);
    std::int64_t i = r.begin;
    for (; i < r.end && i < all.begin; ++i) dst[i] = row[first + i * stride];
    if (done > all.begin) i = done;
    for (; i < r.end; ++i) dst[i] = row[first + i * stride];
  }
}

void split_rows(const float* x, std::int64_t rows, std::int64_t width, std::int64_t pad, std::int64_t stride,
                std::int64_t phase_width, float* out) {
  if (stride == 1) {
    const Range r = inside(-pad, 1, width, phase_width);
    for (std::int64_t i = 0; i < rows; ++i) shift_row(x + i * width, pad, r, phase_width, out + i * phase_width);
    return;
  }
  Range ranges[kMaxPhases];
  for (std::int64_t p = 0; p < stride && p < kMaxPhases; ++p) ranges[p] = inside(p - pad, stride, width, phase_width);
  Range all{pad > 0 ? (pad + stride - 1) / stride : 0, (width + pad) / stride};
  all.end = all.end < phase_width ? all.end : phase_width;
  for (std::int64_t i = 0; i < rows; ++i) {
    split_row(x + i * width, width, pad, stride, ranges, all, phase_width, out + i * stride * phase_width);
  }
}

void add_to(const float* x, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
#if SDX_512_BITS
  // Masks cost little with 512 bits, and rows of small images are shorter than a vector.
  if (i < n) store_tail(hn::Add(load_tail(d, x + i, n - i), load_tail(d, y + i, n - i)), d, y + i, n - i);
#else
  for (; i < n; ++i) y[i] += x[i];
#endif
}

// The elements [i, n) of weave(), one by one; i is a multiple of stride.
void weave_rest(const float* const* phases, std::int64_t stride, float bias, float* y, std::int64_t i, std::int64_t n) {
  for (std::int64_t f = 0; f < stride && f < n; ++f) {
    const float* const from = phases[f] + i / stride;
    for (std::int64_t j = i + f, k = 0; j < n; j += stride, ++k) y[j] = from[k] + bias;
  }
}

void weave(const float* const* phases, std::int64_t stride, float bias, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF b = hn::Set(d, bias);
  const auto at = [&](int phase, std::int64_t q) HWY_ATTR { return hn::Add(hn::LoadU(d, phases[phase] + q), b); };
  std::int64_t i = 0, q = 0;
  if (stride == 1) {
    for (; i + lanes <= n; i += lanes) hn::StoreU(at(0, i), d, y + i);
    for (; i < n; ++i) y[i] = phases[0][i] + bias;
    return;
  }
  if (stride == 2) {
    for (; i + 2 * lanes <= n; i += 2 * lanes, q += lanes) hn::StoreInterleaved2(at(0, q), at(1, q), d, y + i);
    if (n - i < 4) return weave_rest(phases, 2, bias, y, i, n);
    // One by one, the last 24 of 56 took as long as all others.
    HWY_ALIGN float last[2 * kMaxF32Lanes];
    const std::int64_t left = n - i;
    const auto part = [&](int phase, std::int64_t count) HWY_ATTR { return hn::Add(load_floats(phases[phase] + q, count), b); };
    hn::StoreInterleaved2(part(0, (left + 1) / 2), part(1, left / 2), d, last);
    store_floats(hn::Load(d, last), y + i, left);
    if (left > lanes) store_floats(hn::Load(d, last + lanes), y + i + lanes, left - lanes);
    return;
  }
  if (stride == 4) {
    for (; i + 4 * lanes <= n; i += 4 * lanes, q += lanes) {
      hn::StoreInterleaved4(at(0, q), at(1, q), at(2, q), at(3, q), d, y + i);
    }
  }
  weave_rest(phases, stride, bias, y, i, n);
}

void masked_sum(const float* x, const MaskedTap* list, std::int64_t count, float* y, std::int64_t n) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) {
    VF sum = hn::Zero(d);
    for (std::int64_t t = 0; t < count; ++t) {
      const VF v = hn::LoadU(d, x + list[t].at + i);
      sum = hn::Add(sum, hn::And(v, hn::BitCast(d, hn::LoadU(du, list[t].mask + i))));
    }
    hn::StoreU(sum, d, y + i);
  }
}

}  // namespace

const ConvKernels& conv_table() {
  static const ConvKernels table{static_cast<int>(lanes_f32()), patches, taps, split_rows, add_to, weave, masked_sum};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ConvKernels&, conv_kernels, conv_table)
#endif
