// Products whose instructions bench/aarch64/instructions.py counts: `sdx_bench_products CASE TIMES` computes one TIMES times with
// one thread, `sdx_bench_products` lists them. The difference between two runs is the product without its preparation.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/quant_nhwc.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "kernels/cpu/gemm/gemm_bf16.h"
#include "kernels/cpu/gemm/gemm_half.h"
#include "kernels/cpu/nbits/nbits.h"

namespace sdx::cpu {
namespace {

template <class T>
std::vector<T> numbers(std::int64_t n) {
  std::vector<T> v(static_cast<std::size_t>(n));
  std::uint32_t state = 1;
  for (T& x : v) {
    state = state * 1664525U + 1013904223U;
    x = static_cast<T>(static_cast<std::int32_t>(state >> 24) - 128);
  }
  return v;
}

// Memory with the alignment that packed weights need.
class Packed {
 public:
  explicit Packed(std::size_t bytes) : bytes_(bytes + 64) {}
  void* data() { return bytes_.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64) % 64; }

 private:
  std::vector<char> bytes_;
};

// u8 activations, s8 weights; `bytes`: results of 8 bits, else int32. A 3x3 convolution of 14x14 pixels if m is 0.
void int8_product(std::int64_t m, std::int64_t n, std::int64_t k, bool bytes, int times) {
  ConvShape shape = matrix_shape(k, n);
  if (m == 0) {
    for (int i = 1; i < 3; ++i) shape.in[i] = shape.out[i] = 14, shape.kernel[i] = 3, shape.pad[i] = 1;
  }
  const std::vector<std::uint8_t> x = numbers<std::uint8_t>((m == 0 ? 14 * 14 : m) * k);
  const std::vector<std::int8_t> w = numbers<std::int8_t>(volume(shape.kernel) * k * n);
  QWeights weights;
  weights.data = w.data();
  weights.for_convolution = m == 0;
  Packed packed(qnhwc_packed_bytes(shape, weights, false));
  qnhwc_pack(shape, weights, false, packed.data());
  const std::vector<float> scale(static_cast<std::size_t>(n), 1e-4F);
  QEpilogue e;
  if (bytes) {
    e.output = QEpilogue::Output::u8, e.scale = scale.data(), e.scale_is_array = true, e.zero_point = 128;
  }
  std::vector<std::int32_t> y(static_cast<std::size_t>((m == 0 ? 14 * 14 : m) * n));
  const QMatrix a{x.data(), false, k, m, k, 128};
  for (int i = 0; i < times; ++i) {
    if (m == 0) {
      qnhwc_conv(shape, x.data(), false, 128, packed.data(), false, e, y.data());
    } else {
      qnhwc_product(a, n, packed.data(), false, e, y.data(), n);
    }
  }
}

void nbits_product(std::int64_t m, std::int64_t n, std::int64_t k, int bits, NBitsAccuracy accuracy, int times) {
  NBitsSource source;
  source.k = k, source.n = n, source.bits = bits;
  const std::vector<std::uint8_t> codes = numbers<std::uint8_t>(n * k * bits / 8);
  const std::vector<float> scales(static_cast<std::size_t>(n * k / source.block), 0.01F), x = numbers<float>(m * k);
  std::vector<float> y(static_cast<std::size_t>(m * n));
  source.b = codes.data(), source.scales = scales.data();
  Packed packed(nbits_packed_bytes(source));
  nbits_pack(source, packed.data());
  NBitsArgs args;
  args.m = m, args.n = n, args.k = k, args.bits = bits, args.a = x.data(), args.lda = k, args.packed = packed.data();
  args.accuracy = accuracy, args.c = y.data(), args.ldc = n;
  for (int i = 0; i < times; ++i) nbits_gemm(args);
}

void bfloat16_product(std::int64_t m, std::int64_t n, std::int64_t k, int times) {
  const bool dots = has_bf16_dots();
  std::vector<std::uint16_t> w(static_cast<std::size_t>(k * n), 0x3F80);
  const std::vector<float> x = numbers<float>(m * k);
  std::vector<float> y(static_cast<std::size_t>(m * n));
  Packed packed(dots ? bf16_packed_bytes(k, n) : half_packed_bytes(k, n));
  dots ? bf16_pack(w.data(), n, false, k, n, packed.data()) : half_pack(w.data(), n, false, k, n, packed.data());
  HalfGemmArgs args;
  args.m = m, args.n = n, args.k = k, args.type = HalfType::bfloat16, args.a = x.data(), args.lda = k;
  args.packed = packed.data(), args.c = y.data(), args.ldc = n;
  for (int i = 0; i < times; ++i) dots ? bf16_gemm(args) : half_gemm(args);
}

struct Case {
  const char* name;
  double products;  // multiply-adds
  void (*run)(int times);
};

constexpr std::int64_t kN = 256, kK = 512;
template <std::int64_t M>
constexpr double kProducts = static_cast<double>(M) * static_cast<double>(kN) * static_cast<double>(kK);
constexpr NBitsAccuracy kExact = NBitsAccuracy::float32, kCoarse = NBitsAccuracy::int8;

constexpr Case kCases[] = {
    {"int8, 1 row", kProducts<1>, [](int t) { int8_product(1, kN, kK, true, t); }},
    {"int8, 64 rows", kProducts<64>, [](int t) { int8_product(64, kN, kK, true, t); }},
    {"int8, 64 rows, int32 results", kProducts<64>, [](int t) { int8_product(64, kN, kK, false, t); }},
    {"int8, 3x3 convolution", 14 * 14 * 9 * 64 * 64, [](int t) { int8_product(0, 64, 64, true, t); }},
    {"4 bits, 1 row", kProducts<1>, [](int t) { nbits_product(1, kN, kK, 4, kExact, t); }},
    {"4 bits, 4 rows", kProducts<4>, [](int t) { nbits_product(4, kN, kK, 4, kExact, t); }},
    {"4 bits, 1 row, int8 activations", kProducts<1>, [](int t) { nbits_product(1, kN, kK, 4, kCoarse, t); }},
    {"4 bits, 4 rows, int8 activations", kProducts<4>, [](int t) { nbits_product(4, kN, kK, 4, kCoarse, t); }},
    {"4 bits, 64 rows, int8 activations", kProducts<64>, [](int t) { nbits_product(64, kN, kK, 4, kCoarse, t); }},
    {"8 bits, 1 row", kProducts<1>, [](int t) { nbits_product(1, kN, kK, 8, kExact, t); }},
    {"8 bits, 4 rows, int8 activations", kProducts<4>, [](int t) { nbits_product(4, kN, kK, 8, kCoarse, t); }},
    {"bfloat16, 1 row", kProducts<1>, [](int t) { bfloat16_product(1, kN, kK, t); }},
    {"bfloat16, 64 rows", kProducts<64>, [](int t) { bfloat16_product(64, kN, kK, t); }},
};

}  // namespace
}  // namespace sdx::cpu

int main(int argc, char** argv) {
  using sdx::cpu::kCases;
  if (argc == 1) {
    for (const auto& c : kCases) std::printf("%s\t%.0f\n", c.name, c.products);
    return 0;
  }
  sdx::ThreadPool pool(1);
  const sdx::PoolScope scope(pool);
  for (const auto& c : kCases) {
    if (argc == 3 && std::string_view(c.name) == argv[1]) {
      c.run(std::atoi(argv[2]));
      return 0;
    }
  }
  std::fprintf(stderr, "usage: sdx_bench_products [CASE TIMES]\n");
  return 2;
}
