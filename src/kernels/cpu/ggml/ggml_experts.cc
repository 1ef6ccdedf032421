#include "kernels/cpu/ggml/ggml_experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// So many rows are computed together, those of one expert in any case: their intermediate results take 12 MB where k is 2048
// and f 768.
constexpr std::int64_t kRowsTogether = 512;

class Experts {
 public:
  explicit Experts(const ExpertsArgs& a) : a_(a) {}

  void run() {
    std::fill_n(a_.y, a_.tokens * a_.k, 0.0F);
    for (std::int64_t first = 0, last = 0; first < a_.experts; first = last) {
      const std::int64_t begin = a_.begin[first];
      for (last = first + 1; last < a_.experts && a_.begin[last + 1] - begin <= kRowsTogether;) ++last;
      if (a_.begin[last] > begin) part(first, last, begin, a_.begin[last] - begin);
    }
  }

 private:
  // Experts [first, last), whose tokens are `rows` from row `begin` on.
  void part(std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t rows) {
    const std::int64_t k = a_.k, f = a_.f;
    float* in = thread_scratch(4, static_cast<std::size_t>(2 * rows * (k + f)));
    float *gate = in + rows * k, *up = gate + rows * f, *out = up + rows * f;
    parallel_for(rows, std::max<std::int64_t>(1, 16384 / k), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t r = from; r < to; ++r) std::copy_n(a_.x + a_.token[begin + r] * k, k, in + r * k);
    });
    std::vector<GgmlArgs> products;
    for (std::int64_t e = first; e < last; ++e) {
      add(products, a_.gate, e, f, k, in, gate, begin);
      add(products, a_.up, e, f, k, in, up, begin);
    }
    ggml_gemms(products);
    activate(gate, up, rows * f);
    products.clear();
    for (std::int64_t e = first; e < last; ++e) add(products, a_.down, e, k, f, gate, out, begin);
    ggml_gemms(products);
    // Threads take columns: a token may be in several rows.
    parallel_for(k, std::max<std::int64_t>(64, 16384 / rows), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t r = 0; r < rows; ++r) {
        float* y = a_.y + a_.token[begin + r] * k;
        const float weight = a_.weight[begin + r];
        for (std::int64_t j = from; j < to; ++j) y[j] += weight * out[r * k + j];
      }
    });
  }

  // The product of expert `e`'s rows, n columns of k elements each.
  void add(std::vector<GgmlArgs>& products, const ExpertMatrix& matrix, std::int64_t e, std::int64_t n, std::int64_t k,
           const float* in, float* out, std::int64_t begin) const {
    const std::int64_t row = a_.begin[e] - begin, rows = a_.begin[e + 1] - a_.begin[e];
    if (rows == 0) return;
    GgmlArgs g;
    g.format = matrix.format;
    g.accuracy = a_.accuracy;
    g.m = rows, g.n = n, g.k = k;
    g.a = in + row * k, g.lda = k;
    g.weights = matrix.weights[e];
    g.bias = matrix.bias != nullptr ? matrix.bias + e * n : nullptr;
    g.c = out + row * n, g.ldc = n;
    products.push_back(g);
  }

  void activate(float* gate, float* up, std::int64_t count) const {
    if (std::isfinite(a_.limit)) {
      unary_f32({Unary::clip, -INFINITY, a_.limit}, gate, gate, count);
      unary_f32({Unary::clip, -a_.limit, a_.limit}, up, up, count);
    }
    if (a_.beta != 0.0F) unary_f32({Unary::affine, 1.0F, a_.beta}, up, up, count);
    unary_f32({Unary::silu, a_.alpha, 0.0F}, gate, gate, count);
    binary_f32(Binary::mul, gate, up, gate, count);
  }

  const ExpertsArgs& a_;
};

}  // namespace

void ggml_experts(const ExpertsArgs& args) { Experts(args).run(); }

}  // namespace sdx::cpu
