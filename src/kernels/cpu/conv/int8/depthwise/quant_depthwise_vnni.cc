#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/simd/attributes.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_quads-inl.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostColumns = 120;  // of quads at a time: 30 KB

// Computes one output row of `width` pixels. w: [column of taps][j].
template <int kStride, int kGroups>
void compute(const Planes<kStride, kGroups>& from, const Finish& f, const __m512i (&w)[3][4], std::int64_t width,
             std::int64_t channels, std::uint8_t* y) {
  constexpr std::int64_t kPixels = 4 / kGroups;
  const std::int64_t second = kStride == 1 ? from.kColumn : from.half, third = kStride == 1 ? 2 * from.kColumn : from.kColumn;
  const auto sum = [&](const std::uint8_t* at, int j) {
    const auto add = [&](Ints c, std::int64_t offset, __m512i weights) {
      return reinterpret_cast<Ints>(
          _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(c), _mm512_loadu_si512(at + j * from.plane + offset), weights));
    };
    return add(add(add(f.bias[j], 0, w[0][j]), second, w[1][j]), third, w[2][j]);
  };
  for (std::int64_t i = 0; i < width; i += kPixels) {
    const std::uint8_t* at = from.at + i * from.kColumn;
    const Ints s0 = sum(at, 0), s1 = sum(at, 1), s2 = sum(at, 2), s3 = sum(at, 3);
    put_pixels<kGroups>(y + i * channels, channels, width - i, bytes_of(f, words_of(f, s0, s1, 0), words_of(f, s2, s3, 2)));
  }
}

template <int kStride, int kGroups>
void rows_of(const QDepthwise3& d) {
  using V = Bytes<kGroups>;
  const ConvShape& s = *d.shape;
  const Finish f = finish_of<kGroups>(d);
  __m512i upper[3][4], lower[3][4];
  for (int x = 0; x < 3; ++x) {
    V taps[3], none, q[4];
    for (int y = 0; y < 3; ++y) narrow(d.weights + (3 * y + x) * d.weight_step, taps[y]);
    fill(0, none);
    interleave(taps[0], taps[1], taps[2], none, q);
    for (int j = 0; j < 4; ++j) {
      upper[x][j] = everywhere(q[j]);
      lower[x][j] = _mm512_slli_epi32(upper[x][j], 8);
    }
  }
  // Four image rows serve two output rows at stride 1; three serve one at stride 2.
  constexpr std::int64_t kRows = kStride == 1 ? 2 : 1, kMostOut = (kMostColumns - 3) / kStride + 1;
  const std::int64_t width = s.out[2], row_bytes = width * s.groups;
  for (std::int64_t row = d.begin; row < d.end; row += kRows) {
    for (std::int64_t x = 0; x < width; x += kMostOut) {
      const std::int64_t count = std::min(kMostOut, width - x), columns = (count - 1) * kStride + 3;
      const Planes<kStride, kGroups> quads(reinterpret_cast<std::uint8_t*>(d.pairs), columns);
      make_quads<kStride == 1 ? 4 : 3>(d, row * kStride - s.pad[1], x * kStride - s.pad[2], columns, quads);
      std::uint8_t* y = d.y + row * row_bytes + x * s.groups;
      compute(quads, f, upper, count, s.groups, y);
      if (kRows == 2 && row + 1 < d.end) compute(quads, f, lower, count, s.groups, y + row_bytes);
    }
  }
}

template <int kGroups>
void depthwise(const QDepthwise3& d) {
  d.shape->stride[1] == 1 ? rows_of<1, kGroups>(d) : rows_of<2, kGroups>(d);
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
QDepthwiseQuads qdepthwise_quads(std::int64_t groups) {
  return groups >= 4 ? depthwise<4> : groups >= 2 ? depthwise<2> : depthwise<1>;
}
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
QDepthwiseQuads qdepthwise_quads(std::int64_t) { return nullptr; }
}  // namespace sdx::cpu

#endif
