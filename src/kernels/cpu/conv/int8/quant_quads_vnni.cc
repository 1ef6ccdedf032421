#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
#include "kernels/cpu/conv/int8/quant_quads_bytes-inl.h"

namespace sdx::cpu {
namespace {

// Weights come from memory, and are wanted one panel after the other: a line with each quad, for as many as there are left.
struct Ahead {
  const char* at;
  std::int64_t step;
};

// M rows; kHalf: only the first 16 columns count.
template <int M, bool kHalf, bool kClamp>
void tile(const QQuadPanel& g, std::int64_t row, Ahead ahead) {
  const std::int64_t s = g.stride;
  const std::uint8_t* const first = g.a + row * s;
  const std::uint8_t* a[4] = {first, first + 3 * s, first + 6 * s, first + 9 * s};
  const std::int8_t* b = g.b;
  const QQuadFinish& f = *g.finish;
  const auto start = reinterpret_cast<Ints>(_mm512_load_si512(f.bias));
  const auto start_high = reinterpret_cast<Ints>(_mm512_load_si512(f.bias + 16));
#define SDX_DECLARE(I)    \
  Ints c##I = start;      \
  Ints e##I = start_high; \
  (void)c##I;             \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
  for (std::int64_t p = 0; p < g.quads; ++p) {
    const __m512i b0 = _mm512_loadu_si512(b);
    const __m512i b1 = kHalf ? b0 : _mm512_loadu_si512(b + 64);
#define SDX_STEP(I)                                                                                                   \
  if constexpr (M > I) {                                                                                              \
    int quad;                                                                                                         \
    std::memcpy(&quad, a[I / 3] + (I % 3) * s, sizeof(quad));                                                         \
    const __m512i v = _mm512_set1_epi32(quad);                                                                        \
    c##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(c##I), v, b0));                       \
    if constexpr (!kHalf) e##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(e##I), v, b1)); \
  }
    SDX_REPEAT_12(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 4;
    b += 128;
    __builtin_prefetch(ahead.at, 0, 2);
    ahead.at += ahead.step;
  }
  std::uint8_t* const y = g.y + row * g.ldc;
  const auto columns = static_cast<__mmask32>((std::uint64_t{1} << g.columns) - 1);
#define SDX_STORE(I, J)                                                                        \
  if constexpr (M > J) {                                                                       \
    const __m512i v = bytes_of(f, words<kClamp>(f, c##I, e##I), words<kClamp>(f, c##J, e##J)); \
    store(y + I * g.ldc, columns, _mm512_castsi512_si256(v));                                  \
    store(y + J * g.ldc, columns, _mm512_extracti64x4_epi64(v, 1));                            \
  } else if constexpr (M > I) {                                                                \
    const __m512i w = words<kClamp>(f, c##I, e##I);                                            \
    store(y + I * g.ldc, columns, _mm512_castsi512_si256(bytes_of(f, w, w)));                  \
  }
  SDX_STORE(0, 1)
  SDX_STORE(2, 3)
  SDX_STORE(4, 5)
  SDX_STORE(6, 7)
  SDX_STORE(8, 9)
  SDX_STORE(10, 11)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}

template <bool kHalf, bool kClamp>
void tile_of(const QQuadPanel& g, std::int64_t row, std::int64_t m, Ahead ahead) {
  switch (m) {
#define SDX_CASE(I) \
  case I + 1: return tile<I + 1, kHalf, kClamp>(g, row, ahead);
    SDX_REPEAT_12(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

void panel(const QQuadPanel& g) {
  const std::int64_t tiles = (g.m + kQuadRows - 1) / kQuadRows;
  const std::int64_t fetched = g.quads * 64;  // with each tile
  const bool half = g.columns <= kQuadColumns / 2, clamp = g.finish->clamp;
  const auto tile = half    ? (clamp ? tile_of<true, true> : tile_of<true, false>)
                    : clamp ? tile_of<false, true>
                            : tile_of<false, false>;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t row = g.m * i / tiles, m = g.m * (i + 1) / tiles - row;
    const Ahead ahead =
        i * fetched < g.ahead_bytes ? Ahead{g.ahead + i * fetched, 64} : Ahead{reinterpret_cast<const char*>(g.b), 0};
    tile(g, row, m, ahead);
  }
}

// n bytes; up to 63 behind them are written too.
inline std::uint8_t* copy(std::uint8_t* to, const std::uint8_t* from, std::int64_t n, __m512i flip) {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flip));
  if (n - i > 32) {
    const auto mask = ~std::uint64_t{0} >> (64 - (n - i));
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from + i), flip));
  } else if (n > i) {
    const auto mask = static_cast<__mmask32>(~std::uint32_t{0} >> (32 - (n - i)));
    const __m256i v = _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, from + i), _mm512_castsi512_si256(flip));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), v);
  }
  return to + n;
}

inline std::uint8_t* fill(std::uint8_t* to, std::int64_t n, __m512i value) {
  for (std::int64_t i = 0; i < n; i += 64) _mm512_storeu_si512(to + i, value);
  return to + n;
}

// Runs of neighbouring taps: as they lie in the image where nothing spaces them, else one by one.
struct Runs {
  std::int64_t taps, count, bytes;
  explicit Runs(const ConvShape& s)
      : taps(s.dilation[2] == 1 ? s.kernel[2] : 1), count(s.kernel[2] / taps), bytes(taps * s.in_channels) {}
};

// One row. Order matters: what a copy writes too much belongs to what follows.
void gather_row(const QSource& q, const Runs& runs, const std::int64_t (&origin)[3], std::int64_t batch, std::uint8_t* to,
                __m512i flip) {
  const ConvShape& s = *q.shape;
  const std::int64_t channels = s.in_channels;
  const __m512i zero = _mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(q.zero)), flip);
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t z = origin[0] + kz * s.dilation[0];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t y = origin[1] + ky * s.dilation[1];
      const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
      const std::uint8_t* line = q.x + ((batch * s.in[0] + z) * s.in[1] + y) * s.in[2] * channels;
      for (std::int64_t i = 0; i < runs.count; ++i) {
        const std::int64_t x = origin[2] + i * s.dilation[2];
        const std::int64_t begin = inside ? std::clamp<std::int64_t>(-x, 0, runs.taps) : runs.taps;
        const std::int64_t stop = std::clamp<std::int64_t>(s.in[2] - x, begin, runs.taps);
        to = fill(to, begin * channels, zero);
        if (stop > begin) to = copy(to, line + (x + begin) * channels, (stop - begin) * channels, flip);
        to = fill(to, (runs.taps - stop) * channels, zero);
      }
    }
  }
}

constexpr std::int64_t kMostRuns = 64;

// Outputs whose windows lie inside of the image: runs at `offsets` from `x` on.
void gather_inner(const std::uint8_t* x, std::int64_t step, const std::int64_t* offsets, std::int64_t runs, std::int64_t bytes,
                  std::int64_t count, std::uint8_t* to, std::int64_t row_bytes, __m512i flip) {
  if (bytes <= 32) {
    const auto mask = static_cast<__mmask32>(~std::uint32_t{0} >> (32 - bytes));
    for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
      for (std::int64_t r = 0; r < runs; ++r) {
        const __m256i v = _mm256_maskz_loadu_epi8(mask, x + offsets[r]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * bytes), _mm256_xor_si256(v, _mm512_castsi512_si256(flip)));
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
    std::uint8_t* at = to;
    for (std::int64_t r = 0; r < runs; ++r) at = copy(at, x + offsets[r], bytes, flip);
  }
}

void gather(const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows) {
  const QSource& q = w.source;
  const ConvShape& s = *q.shape;
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(q.is_signed ? 0x80 : 0));
  const Runs runs(s);
  const std::int64_t all = runs.count * s.kernel[0] * s.kernel[1], channels = s.in_channels;
  std::int64_t offsets[kMostRuns];
  for (std::int64_t i = 0; i < all && all <= kMostRuns; ++i) {
    const std::int64_t line = i / runs.count, z = line / s.kernel[1] * s.dilation[0], y = line % s.kernel[1] * s.dilation[1];
    offsets[i] = (((z * s.in[1]) + y) * s.in[2] + i % runs.count * s.dilation[2]) * channels;
  }
  // Outputs [from, to) of each line whose windows neither begin before the image's lines nor end behind them.
  const std::int64_t reach = (s.kernel[2] - 1) * s.dilation[2] + 1, room = s.in[2] + s.pad[2] - reach;
  const std::int64_t from = std::min(s.out[2], std::max<std::int64_t>(0, s.pad[2] + s.stride[2] - 1) / s.stride[2]);
  const std::int64_t to = room < 0 ? from : std::clamp(room / s.stride[2] + 1, from, s.out[2]);
  std::int64_t x = first % s.out[2], line = first / s.out[2];
  while (count > 0) {
    const std::int64_t z = line / s.out[1] % s.out[0], batch = line / (s.out[1] * s.out[0]);
    std::int64_t origin[3] = {z * s.stride[0] - s.pad[0], line % s.out[1] * s.stride[1] - s.pad[1], 0};
    const bool whole = all <= kMostRuns && origin[0] >= 0 && origin[0] + (s.kernel[0] - 1) * s.dilation[0] < s.in[0] &&
                       origin[1] >= 0 && origin[1] + (s.kernel[1] - 1) * s.dilation[1] < s.in[1];
    const std::int64_t stop = std::min(s.out[2], x + count);
    const std::int64_t inner = whole ? std::clamp(from, x, stop) : stop, behind = whole ? std::clamp(to, inner, stop) : stop;
    const auto edges = [&](std::int64_t end) {
      for (; x < end; ++x, --count, rows += w.row_bytes) {
        origin[2] = x * s.stride[2] - s.pad[2];
        gather_row(q, runs, origin, batch, rows, flip);
      }
    };
    edges(inner);
    if (behind > inner) {
      const std::int64_t pixel = ((batch * s.in[0] + origin[0]) * s.in[1] + origin[1]) * s.in[2] + x * s.stride[2] - s.pad[2];
      gather_inner(q.x + pixel * channels, s.stride[2] * channels, offsets, all, runs.bytes, behind - inner, rows, w.row_bytes,
                   flip);
      rows += (behind - inner) * w.row_bytes;
      count -= behind - inner;
      x = behind;
    }
    edges(stop);
    x = 0;
    ++line;
  }
}

constexpr QQuadKernels kKernels = {panel, gather};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
const QQuadKernels* qquad_kernels() { return &kKernels; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
const QQuadKernels* qquad_kernels() { return nullptr; }
}  // namespace sdx::cpu

#endif
