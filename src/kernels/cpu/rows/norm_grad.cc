#include "kernels/cpu/rows/norm_grad.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/rows/norm_grad_simd.h"

namespace sdx::cpu {
namespace {

// Each part sums the parameters' gradients over its own rows; more parts than threads would only lengthen the final sum.
constexpr std::int64_t kParts = 16;
constexpr std::int64_t kElements = 8192;  // per part, at least

std::int64_t parts_of(std::int64_t rows, std::int64_t n) {
  return std::clamp<std::int64_t>(rows * n / kElements, 1, std::min(kParts, std::max<std::int64_t>(1, rows)));
}

template <class T>
void over_rows(const LayerNormGradKernels<T>& k, const LayerNormGradArgs<T>& args, std::int64_t rows, std::int64_t n,
               void* workspace) {
  if (n <= 0) return;
  const std::int64_t parts = parts_of(rows, n);
  auto* const sums = static_cast<T*>(workspace);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      T* const own = sums + p * 2 * n;
      std::fill_n(own, 2 * n, T{0});
      for (std::int64_t r = rows * p / parts; r < rows * (p + 1) / parts; ++r) k.row(args, r, n, own, own + n);
    }
  });
  for (std::int64_t p = 1; p < parts; ++p) k.add(sums, sums + p * 2 * n, 2 * n);
  if (args.dscale != nullptr) std::copy_n(sums, n, args.dscale);
  if (args.dbias != nullptr) std::copy_n(sums + n, n, args.dbias);
}

}  // namespace

std::size_t layer_norm_grad_bytes(std::int64_t rows, std::int64_t n, std::size_t bytes) {
  return static_cast<std::size_t>(parts_of(rows, n)) * 2 * static_cast<std::size_t>(n) * bytes;
}

void layer_norm_grad(const LayerNormGradArgs<float>& args, std::int64_t rows, std::int64_t n, void* workspace) {
  over_rows(norm_grad_kernels().f32, args, rows, n, workspace);
}

void layer_norm_grad(const LayerNormGradArgs<double>& args, std::int64_t rows, std::int64_t n, void* workspace) {
  over_rows(norm_grad_kernels().f64, args, rows, n, workspace);
}

}  // namespace sdx::cpu
