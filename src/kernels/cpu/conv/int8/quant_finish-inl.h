// Applies an epilogue to rows of int32 sums; included once per instruction set.
#if defined(SDX_KERNELS_CPU_QUANT_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_QUANT_FINISH_INL_H_
#undef SDX_KERNELS_CPU_QUANT_FINISH_INL_H_
#else
#define SDX_KERNELS_CPU_QUANT_FINISH_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/quant/quant_store-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

template <bool kPlain, bool kSigned>
void finish_bytes(const Columns& k, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::uint8_t* y,
                  std::int64_t ldc) {
  const auto words = [&](const std::int32_t* p) HWY_ATTR {
    const auto at = [&](int i) HWY_ATTR { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i)); };
    return words_of<kPlain>(k, _mm256_add_epi32(at(0), k.bias0), _mm256_add_epi32(at(8), k.bias1));
  };
  std::int64_t i = 0;
  for (; i + 2 <= m; i += 2, sums += 2 * step, y += 2 * ldc) store_two<kSigned>(words(sums), words(sums + step), y, y + ldc);
  if (i < m) store_one<kSigned>(words(sums), y);
}

// The last columns, fewer than 16. All 16 sums of a row are readable.
inline void finish_partial(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t n,
                           std::int64_t column, std::uint8_t* y, std::int64_t ldc) {
  constexpr std::int64_t kRows = 16;
  HWY_ALIGN std::int32_t bias[16] = {};
  HWY_ALIGN float scale[16] = {};
  HWY_ALIGN std::uint8_t bytes[kRows * 16];
  for (std::int64_t j = 0; j < n; ++j) {
    bias[j] = e.bias != nullptr ? e.bias[column + j] : 0;
    scale[j] = e.scale[e.scale_is_array ? column + j : 0];
  }
  QEpilogue own = e;
  own.bias = bias;
  own.scale = scale;
  own.scale_is_array = true;
  const Columns k = columns_of(own, 0);
  for (std::int64_t i = 0; i < m; i += kRows) {
    const std::int64_t rows = m - i < kRows ? m - i : kRows;
    by_kind(k, [&](auto plain, auto is_signed)
                   HWY_ATTR { finish_bytes<plain, is_signed>(k, sums + i * step, step, rows, bytes, 16); });
    for (std::int64_t r = 0; r < rows; ++r, y += ldc) {
      n == 8 ? std::memcpy(y, bytes + r * 16, 8) : std::memcpy(y, bytes + r * 16, static_cast<std::size_t>(n));
    }
  }
}

#endif

#if HWY_TARGET == HWY_SCALAR

inline void finish_bytes(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t n,
                         std::int64_t column, std::uint8_t* y, std::int64_t ldc) {
  for (std::int64_t j = 0; j < n; ++j) {
    const std::uint32_t bias = e.bias != nullptr ? static_cast<std::uint32_t>(e.bias[column + j]) : 0;
    const float scale = e.scale[e.scale_is_array ? column + j : 0];
    for (std::int64_t i = 0; i < m; ++i) {
      const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[i * step + j]) + bias);
      y[i * ldc + j] = byte_of(e, static_cast<float>(sum) * scale);
    }
  }
}

#endif

// Finishes m rows of sums, `step` apart, of columns [column, column + n) and writes them to c, whose rows are ldc elements apart.
inline void finish_rows(const QEpilogue& e, const std::int32_t* sums, std::int64_t step, std::int64_t m, std::int64_t n,
                        std::int64_t column, void* c, std::int64_t ldc) {
  std::int64_t done = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  if (gives_bytes(e)) {
    for (; n - done >= 16; done += 16) {
      const Columns k = columns_of(e, column + done);
      by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR {
        finish_bytes<plain, is_signed>(k, sums + done, step, m, static_cast<std::uint8_t*>(c) + done, ldc);
      });
    }
    if (done < n && step - done >= 16) {
      return finish_partial(e, sums + done, step, m, n - done, column + done, static_cast<std::uint8_t*>(c) + done, ldc);
    }
  }
#elif HWY_TARGET == HWY_SCALAR
  if (gives_bytes(e)) return finish_bytes(e, sums, step, m, n, column, static_cast<std::uint8_t*>(c), ldc);
#endif
  if (done == n) return;
  const DI d;
  const std::int64_t lanes = lanes_f32();
  const Narrow r = narrow_of(e, 0, column);
  for (std::int64_t i = 0; i < m; ++i) {
    void* y = static_cast<char*>(c) + i * ldc * bytes_per_output(e);
    for (std::int64_t j = done; j < n; j += lanes) put(r, hn::LoadU(d, sums + i * step + j), j, n - j, y);
  }
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
