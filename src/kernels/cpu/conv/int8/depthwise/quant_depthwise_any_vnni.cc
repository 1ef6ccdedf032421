// Depthwise convolutions of shapes other than 3x3 with vpdpbusd. Image rows lie in quads of four rows, one above the other for
// each channel, in a ring that moves along with the output row. Which of a quad's rows the first tap reads changes from one
// output row to the next, so weights are arranged for each of the four positions. 5x5 taps take 10 multiply-adds for 16 results.

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_any_simd.h"
#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_quads-inl.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostRing = (kMostDepthwiseTaps + 6) / 4;
constexpr std::int64_t kRingColumns = 120;  // of quads at a time, over the whole ring: 30 KB

// The weights of one output row, [quad][tap of a row][j], for each position of the first tap among a quad's rows.
struct QuadWeights {
  alignas(64) std::int8_t of[4][kMostRing * kMostDepthwiseTaps * 4 * 64];
  bool known[4] = {};
};

template <int kGroups>
void arrange(const QDepthwise3& d, std::int64_t place, QuadWeights& w) {
  if (w.known[place]) return;
  w.known[place] = true;
  const std::int64_t height = d.shape->kernel[1], width = d.shape->kernel[2];
  std::int8_t* to = w.of[place];
  for (std::int64_t first = -place; first < height; first += 4) {
    for (std::int64_t x = 0; x < width; ++x, to += 4 * 64) {
      Bytes<kGroups> taps[4], q[4];
      for (std::int64_t r = 0; r < 4; ++r) {
        const std::int64_t y = first + r;
        fill(0, taps[r]);
        if (y >= 0 && y < height) narrow(d.weights + (y * width + x) * d.weight_step, taps[r]);
      }
      interleave(taps[0], taps[1], taps[2], taps[3], q);
      for (int j = 0; j < 4; ++j) _mm512_store_si512(to + j * 64, everywhere(q[j]));
    }
  }
}

// The operands of one output row.
struct QuadRow {
  const std::uint8_t* quads[kMostRing];
  std::int64_t count, taps;
  std::int64_t offsets[kMostDepthwiseTaps];  // of each tap of a row, in bytes
  std::int64_t plane;
  const std::int8_t* weights;
};

// Computes channels [4j, 4j + 8) of each 16 for kVectors vectors of pixels, from byte `at` on, as words.
template <int kVectors>
inline void half_of(const QuadRow& r, const Finish& f, std::int64_t at, int j, __m512i* words) {
#define SDX_DECLARE(I)       \
  Ints c##I = f.bias[j];     \
  Ints e##I = f.bias[j + 1]; \
  (void)c##I;                \
  (void)e##I;
  SDX_REPEAT_4(SDX_DECLARE)
  const std::int8_t* w = r.weights + j * 64;
  for (std::int64_t q = 0; q < r.count; ++q) {
    const std::uint8_t* const from = r.quads[q] + j * r.plane + at;
    for (std::int64_t t = 0; t < r.taps; ++t, w += 4 * 64) {
      const std::uint8_t* const x = from + r.offsets[t];
      const __m512i w0 = _mm512_load_si512(w), w1 = _mm512_load_si512(w + 64);
#define SDX_ADD(SUM, AT, W) \
  SUM = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(SUM), _mm512_loadu_si512(AT), W))
#define SDX_STEP(I)                          \
  if constexpr (kVectors > I) {              \
    SDX_ADD(c##I, x + I * 64, w0);           \
    SDX_ADD(e##I, x + r.plane + I * 64, w1); \
  }
      SDX_REPEAT_4(SDX_STEP)
#undef SDX_STEP
#undef SDX_ADD
    }
  }
#define SDX_WORDS(I)                       \
  if constexpr (kVectors > I) {            \
    words[I] = words_of(f, c##I, e##I, j); \
  }
  SDX_REPEAT_4(SDX_WORDS)
#undef SDX_WORDS
#undef SDX_DECLARE
}

template <int kVectors, int kGroups>
inline void vectors(const QuadRow& r, const Finish& f, std::int64_t pixel, std::int64_t width, std::int64_t channels,
                    std::uint8_t* y) {
  constexpr std::int64_t kPixels = 4 / kGroups;
  __m512i low[kVectors], high[kVectors];
  half_of<kVectors>(r, f, pixel * kGroups * 16, 0, low);
  half_of<kVectors>(r, f, pixel * kGroups * 16, 2, high);
  for (int i = 0; i < kVectors; ++i, pixel += kPixels) {
    put_pixels<kGroups>(y + pixel * channels, channels, width - pixel, bytes_of(f, low[i], high[i]));
  }
}

template <int kStride, int kGroups>
void any_rows(const QDepthwise3& d) {
  constexpr std::int64_t kPixels = 4 / kGroups, kAtOnce = 4;
  const ConvShape& s = *d.shape;
  const Finish f = finish_of<kGroups>(d);
  const std::int64_t ring = (s.kernel[1] + 6) / 4, most = (kRingColumns / ring - s.kernel[2]) / kStride + 1;
  const std::int64_t top = d.begin * s.stride[1] - s.pad[1];
  QuadWeights weights;
  QuadRow r;
  r.taps = s.kernel[2];
  const Cuts cuts(s.out[2], most);
  for (std::int64_t part = 0; part < cuts.parts; ++part) {
    const std::int64_t x = cuts.begin(part), width = cuts.size(part), columns = (width - 1) * kStride + s.kernel[2];
    auto* const buffer = reinterpret_cast<std::uint8_t*>(d.pairs);
    const Planes<kStride, kGroups> shape(buffer, columns);
    const auto slot = [&](std::int64_t quad) {
      return Planes<kStride, kGroups>(buffer + quad % ring * 4 * shape.plane, columns);
    };
    r.plane = shape.plane;
    for (std::int64_t t = 0; t < r.taps; ++t) r.offsets[t] = shape.column(t) - shape.at;
    std::int64_t next = 0;  // the next quad to enter the ring
    for (std::int64_t row = d.begin; row < d.end; ++row) {
      const std::int64_t first = (row - d.begin) * s.stride[1], quad = first / 4, place = first % 4;
      arrange<kGroups>(d, place, weights);
      r.weights = weights.of[place];
      r.count = (s.kernel[1] + place + 3) / 4;
      for (next = std::max(next, quad); next < quad + r.count; ++next) {
        make_quads<4>(d, top + 4 * next, x * kStride - s.pad[2], columns, slot(next));
      }
      for (std::int64_t q = 0; q < r.count; ++q) r.quads[q] = slot(quad + q).at;
      std::uint8_t* const y = d.y + (row * s.out[2] + x) * s.groups;
      std::int64_t i = 0;
      for (; i + (kAtOnce - 1) * kPixels < width; i += kAtOnce * kPixels) vectors<kAtOnce, kGroups>(r, f, i, width, s.groups, y);
      for (; i < width; i += kPixels) vectors<1, kGroups>(r, f, i, width, s.groups, y);
    }
  }
}

template <int kGroups>
void depthwise(const QDepthwise3& d) {
  d.shape->stride[2] == 1 ? any_rows<1, kGroups>(d) : any_rows<2, kGroups>(d);
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
QDepthwiseQuads qdepthwise_any_quads(std::int64_t groups) {
  return groups >= 4 ? depthwise<4> : groups >= 2 ? depthwise<2> : depthwise<1>;
}
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
QDepthwiseQuads qdepthwise_any_quads(std::int64_t) { return nullptr; }
}  // namespace sdx::cpu

#endif
