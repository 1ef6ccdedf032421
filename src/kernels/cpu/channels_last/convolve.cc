// By matrix products: the windows of a block of positions are copied side by side ("im2col") and multiplied by the weights. With
// channels last, windows are copied in runs, and products are results as they lie in memory.

#include "kernels/cpu/channels_last/convolve.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_wide.h"

namespace sdx::cpu {
namespace {

template <class T>
struct Matrix {
  const T* data;
  std::int64_t ld;
  bool trans;
  const T* packed = nullptr;  // of a right operand: see Packed
};

// The weights of each group in the order in which products read them, since there are many blocks of positions. float64 has no
// such order.
template <class T>
class Packed {
 public:
  // op(weights of a group) is [k, n].
  Packed(const Windows& w, const T* weights, bool trans, std::int64_t k, std::int64_t n)
      : weights_(weights), ld_(w.window()), size_(w.out_each() * w.window()), trans_(trans) {
    if constexpr (std::is_same_v<T, float>) {
      const std::size_t bytes = packed_b_bytes(k, n);
      packed_ = Tensor(DataType::uint8, {static_cast<std::int64_t>(bytes) * w.groups});
      each_ = static_cast<std::int64_t>(bytes / sizeof(float));
      auto* to = static_cast<float*>(packed_.mutable_data());
      for (std::int64_t g = 0; g < w.groups; ++g) {
        pack_b_f32(weights + g * size_, ld_, trans, k, n, 1.0F, to + g * each_);
      }
    }
  }
  Matrix<T> of(std::int64_t group) const {
    const auto* packed = static_cast<const T*>(packed_.data());
    return {weights_ + group * size_, ld_, trans_, packed == nullptr ? nullptr : packed + group * each_};
  }

 private:
  const T* weights_;
  std::int64_t ld_, size_, each_ = 0;
  bool trans_;
  Tensor packed_;
};

// c = op(a) op(b), or c += op(a) op(b) if `adds`.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c, std::int64_t ldc,
              bool adds) {
  GemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.lda = a.ld, g.trans_a = a.trans;
  g.b = b.data, g.ldb = b.ld, g.trans_b = b.trans, g.packed_b = b.packed;
  g.c = c, g.ldc = ldc;
  if (adds) g.epilogue.residual = c, g.epilogue.ld_residual = ldc;
  gemm_f32(g);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<double> a, Matrix<double> b, double* c, std::int64_t ldc,
              bool adds) {
  std::vector<double> fresh(adds ? static_cast<std::size_t>(m * n) : 0);
  WideGemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.lda = a.ld, g.trans_a = a.trans;
  g.b = b.data, g.ldb = b.ld, g.trans_b = b.trans;
  g.c = adds ? fresh.data() : c, g.ldc = adds ? n : ldc;
  gemm_wide(g);
  for (std::int64_t i = 0; adds && i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] += fresh[static_cast<std::size_t>(i * n + j)];
  }
}

// The number of positions whose windows are multiplied at once: some 512 KB of them.
std::int64_t block_of(const Windows& w, std::size_t element) {
  const std::int64_t fit = (std::int64_t{1} << 19) / std::max<std::int64_t>(1, w.window() * static_cast<std::int64_t>(element));
  return std::clamp<std::int64_t>(fit, 48, 1024);
}

}  // namespace

template <class T>
void convolve(const Windows& w, const T* x, const T* weights, T* y) {
  const std::int64_t block = block_of(w, sizeof(T)), blocks = (w.positions() + block - 1) / block;
  if (w.depthwise()) return convolve_depthwise(w, x, weights, y);
  const Packed<T> packed(w, weights, true, w.window(), w.out_each());
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> windows(static_cast<std::size_t>(block * w.window()));
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = b * block, count = std::min(block, w.positions() - first);
      for (std::int64_t g = 0; g < w.groups; ++g) {
        read_windows(w, x, g, first, count, windows.data());
        multiply(count, w.out_each(), w.window(), Matrix<T>{windows.data(), w.window(), false}, packed.of(g),
                 y + first * w.out_channels + g * w.out_each(), w.out_channels, false);
      }
    }
  });
}

template <class T>
void convolve_input(const Windows& w, const T* y, const T* weights, T* x) {
  std::fill_n(x, w.batch * w.in_size() * w.in_channels, T{0});
  if (w.depthwise()) return spread_depthwise(w, y, weights, x);
  const std::int64_t block = block_of(w, sizeof(T)), each = w.out_size();
  const Packed<T> packed(w, weights, false, w.out_each(), w.window());
  // Windows overlap, so one thread writes all of a picture.
  parallel_for(w.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> windows(static_cast<std::size_t>(block * w.window()));
    for (std::int64_t first = begin * each; first < end * each; first += std::min(block, each - first % each)) {
      const std::int64_t count = std::min(block, each - first % each);
      for (std::int64_t g = 0; g < w.groups; ++g) {
        multiply(count, w.window(), w.out_each(), Matrix<T>{y + first * w.out_channels + g * w.out_each(), w.out_channels, false},
                 packed.of(g), windows.data(), w.window(), false);
        add_windows(w, windows.data(), g, first, count, x);
      }
    }
  });
}

template <class T>
void convolve_weights(const Windows& w, const T* x, const T* y, T* weights) {
  const std::int64_t size = w.out_channels * w.window();
  const std::int64_t block = block_of(w, sizeof(T)), blocks = (w.positions() + block - 1) / block;
  const std::int64_t parts = std::clamp<std::int64_t>(blocks, 1, current_pool().threads());
  std::vector<T> sums(static_cast<std::size_t>(parts * size), T{0});
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> windows(static_cast<std::size_t>(block * w.window()));
    for (std::int64_t part = begin; part < end; ++part) {
      T* sum = sums.data() + part * size;
      const std::int64_t from = part * blocks / parts * block, to = std::min(w.positions(), (part + 1) * blocks / parts * block);
      if (w.depthwise()) {
        correlate_depthwise(w, x, y, from, to, sum);
        continue;
      }
      for (std::int64_t first = from; first < to; first += block) {
        const std::int64_t count = std::min(block, to - first);
        for (std::int64_t g = 0; g < w.groups; ++g) {
          read_windows(w, x, g, first, count, windows.data());
          multiply(w.out_each(), w.window(), count,
                   Matrix<T>{y + first * w.out_channels + g * w.out_each(), w.out_channels, true},
                   Matrix<T>{windows.data(), w.window(), false}, sum + g * w.out_each() * w.window(), w.window(), true);
        }
      }
    }
  });
  std::copy_n(sums.data(), size, weights);
  for (std::int64_t part = 1; part < parts; ++part) {
    for (std::int64_t i = 0; i < size; ++i) weights[i] += sums[static_cast<std::size_t>(part * size + i)];
  }
}

template void convolve(const Windows&, const float*, const float*, float*);
template void convolve(const Windows&, const double*, const double*, double*);
template void convolve_input(const Windows&, const float*, const float*, float*);
template void convolve_input(const Windows&, const double*, const double*, double*);
template void convolve_weights(const Windows&, const float*, const float*, float*);
template void convolve_weights(const Windows&, const double*, const double*, double*);

}  // namespace sdx::cpu
