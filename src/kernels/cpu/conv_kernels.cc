#include "kernels/cpu/conv_kernels.h"

#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kMaxColumns = 256;

// n floats; may write (and, short of `end`, read) up to a vector more.
HWY_INLINE void copy_run(const float* src, const float* end, float* dst, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i < n && src + i + lanes <= end; i += lanes) hn::StoreU(hn::LoadU(d, src + i), d, dst + i);
  for (; i < n; ++i) dst[i] = src[i];
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
      const Range r = inside(first, stride, w, len);
      for (std::int64_t i = 0; i < r.begin; ++i) dst[i] = 0.0F;
      if (stride == 1) {
        copy_run(src + first + r.begin, end, dst + r.begin, r.end - r.begin);
      } else {
        std::int64_t i = r.begin;
        if (stride == 2) {
          const DF d;
          const std::int64_t lanes = lanes_f32();
          for (; i + lanes <= r.end && src + first + 2 * (i + lanes) <= end; i += lanes) {
            VF v0;
            VF v1;
            hn::LoadInterleaved2(d, src + first + 2 * i, v0, v1);
            hn::StoreU(v0, d, dst + i);
          }
        }
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

void patches(const ConvShape& s, const float* x, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t nr = 2 * lanes;
  const std::int64_t plane = s.in[0] * s.in[1] * s.in[2];
  HWY_ALIGN float row[kMaxColumns + 4 * kMaxF32Lanes];
  std::int64_t kx = k0 % s.kernel[2];
  std::int64_t ky = k0 / s.kernel[2] % s.kernel[1];
  std::int64_t kz = k0 / (s.kernel[2] * s.kernel[1]) % s.kernel[0];
  const float* channel = x + k0 / (s.kernel[2] * s.kernel[1] * s.kernel[0]) * plane;
  for (std::int64_t k = 0; k < kc; ++k) {
    patch_row(s, channel, kz, ky, kx, n0, nb, row);
    for (std::int64_t i = 0; i < nr; i += lanes) hn::StoreU(hn::Zero(d), d, row + nb + i);
    for (std::int64_t j = 0; j < nb; j += nr) {
      float* panel = out + j * kc + k * nr;
      hn::StoreU(hn::LoadU(d, row + j), d, panel);
      hn::StoreU(hn::LoadU(d, row + j + lanes), d, panel + lanes);
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

// The nine weights stay in registers; two output rows share their loads when they lie one input row apart.
template <bool kPair>
HWY_INLINE void depthwise3_row(const float* in, std::int64_t out_step, std::int64_t row_step, const std::int64_t (&offset)[3],
                               const VF (&w)[9], VF bias, int clamp, VF lo, VF hi, float* y, std::int64_t width,
                               std::int64_t room) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const auto finish = [&](VF v, float* to, std::int64_t left, std::int64_t writable) HWY_ATTR {
    v = hn::Add(v, bias);
    if (clamp == 1) v = relu(v);
    if (clamp == 2) v = clip(v, lo, hi);
    // Writing past a row's end is fine while the rows behind it are still to come.
    if (writable >= lanes) {
      hn::StoreU(v, d, to);
    } else {
      store_tail(v, d, to, left);
    }
  };
  for (std::int64_t i = 0; i < width; i += lanes) {
    VF a = hn::Zero(d);
    VF b = hn::Zero(d);
    const float* p = in + i;
    for (int ky = 0; ky < 3; ++ky) {
      for (int kx = 0; kx < 3; ++kx) {
        const VF v = hn::LoadU(d, p + ky * row_step + offset[kx]);
        a = hn::MulAdd(w[ky * 3 + kx], v, a);
        if constexpr (kPair) {
          if (ky > 0) b = hn::MulAdd(w[ky * 3 - 3 + kx], v, b);
        }
      }
    }
    finish(a, y + i, width - i, room - i);
    if constexpr (kPair) {
      for (int kx = 0; kx < 3; ++kx) b = hn::MulAdd(w[6 + kx], hn::LoadU(d, p + 3 * row_step + offset[kx]), b);
      finish(b, y + width + i, width - i, room - width - i);
    }
  }
  (void)out_step;
}

void depthwise3(const float* in, std::int64_t out_step, std::int64_t row_step, const std::int64_t (&offset)[3],
                const float* weights, float bias, const UnarySpec& act, float* y, std::int64_t width, std::int64_t rows) {
  const DF d;
  const VF w[9] = {hn::Set(d, weights[0]), hn::Set(d, weights[1]), hn::Set(d, weights[2]),
                   hn::Set(d, weights[3]), hn::Set(d, weights[4]), hn::Set(d, weights[5]),
                   hn::Set(d, weights[6]), hn::Set(d, weights[7]), hn::Set(d, weights[8])};
  const int clamp = act.op == Unary::relu ? 1 : (act.op == Unary::clip ? 2 : 0);
  const VF lo = hn::Set(d, act.a);
  const VF hi = hn::Set(d, act.b);
  const VF vb = hn::Set(d, bias);
  std::int64_t r = 0;
  if (out_step == row_step) {
    // The first row of a pair may not run over into the second, which is written along with it.
    for (; r + 2 <= rows && width % lanes_f32() == 0; r += 2) {
      depthwise3_row<true>(in + r * out_step, out_step, row_step, offset, w, vb, clamp, lo, hi, y + r * width, width,
                           (rows - r) * width);
    }
  }
  for (; r < rows; ++r) {
    depthwise3_row<false>(in + r * out_step, out_step, row_step, offset, w, vb, clamp, lo, hi, y + r * width, width,
                          (rows - r) * width);
  }
}

// All phases of indices from `from` on, as long as whole vectors lie within the row; returns the first index not done. Stride
// 2 or 4.
HWY_INLINE std::int64_t split_vectors(const float* row, std::int64_t width, std::int64_t pad, std::int64_t stride,
                                      std::int64_t from, std::int64_t phase_width, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t q = from;
  VF v0, v1, v2, v3;
  for (; q + lanes <= phase_width && stride * (q + lanes) - pad <= width; q += lanes) {
    const float* src = row + stride * q - pad;
    float* to = out + q;
    if (stride == 2) {
      hn::LoadInterleaved2(d, src, v0, v1);
    } else {
      hn::LoadInterleaved4(d, src, v0, v1, v2, v3);
      hn::StoreU(v2, d, to + 2 * phase_width);
      hn::StoreU(v3, d, to + 3 * phase_width);
    }
    hn::StoreU(v0, d, to);
    hn::StoreU(v1, d, to + phase_width);
  }
  return q;
}

// Stride 1, in whole vectors: what is written behind the row's end belongs to the next row, which is split later.
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

void split_row(const float* row, std::int64_t width, std::int64_t pad, std::int64_t stride, std::int64_t phase_width,
               float* out) {
  if (stride == 1) return shift_row(row, pad, inside(-pad, 1, width, phase_width), phase_width, out);
  // Indices [first_all, end_all) lie inside in every phase and are done by vectors.
  std::int64_t first_all = 0;
  std::int64_t end_all = 0;
  if (stride == 2 || stride == 4) {
    first_all = pad > 0 ? (pad + stride - 1) / stride : 0;
    end_all = split_vectors(row, width, pad, stride, first_all, phase_width, out);
  }
  for (std::int64_t p = 0; p < stride; ++p) {
    float* dst = out + p * phase_width;
    const std::int64_t first = p - pad;
    const Range r = inside(first, stride, width, phase_width);
    for (std::int64_t i = 0; i < r.begin; ++i) dst[i] = 0.0F;
    std::int64_t i = r.begin;
    if (end_all > first_all) {
      for (; i < first_all; ++i) dst[i] = row[first + i * stride];
      i = end_all;
    }
    for (; i < r.end; ++i) dst[i] = row[first + i * stride];
    for (i = r.end; i < phase_width; ++i) dst[i] = 0.0F;
  }
}

void add_to(const float* x, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  for (; i < n; ++i) y[i] += x[i];
}

}  // namespace

const ConvKernels* conv_table() {
  static const ConvKernels table{static_cast<int>(lanes_f32()), patches, taps, depthwise3, split_row, add_to};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const ConvKernels& conv_kernels() { return *SDX_CPU_PICK(conv_table)(); }

}  // namespace sdx::cpu
#endif
