// Speed of the CPU kernels. The counter "FLOP/s" is to be read against the benchmark "fma_peak" of the same run; "bytes/s"
// against "read_bandwidth". Thread counts are the last argument.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/cpu_features.h"
#include "base/memory.h"
#include "base/thread_pool.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using sdx::cpu::Unary;

struct Floats {
  explicit Floats(std::int64_t n) : owner(sdx::allocate(static_cast<std::size_t>(n) * 4)) {
    for (std::int64_t i = 0; i < n; ++i) data()[i] = static_cast<float>(i % 251) * 0.004F - 0.5F;
  }
  float* data() const { return static_cast<float*>(owner.get()); }
  std::shared_ptr<void> owner;
};

void flops(benchmark::State& state, double per_iteration) {
  state.counters["FLOP/s"] =
      benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::OneK::kIs1000);
}

#if defined(__x86_64__)
// 12 independent chains of fused multiply-adds: more than latency times throughput on every known core.
__attribute__((target("avx2,fma"), noinline)) float spin_avx2(std::int64_t n) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1.0F);
  const __m256 x = _mm256_set1_ps(0.999F);
  const __m256 y = _mm256_set1_ps(0.001F);
  __m256 a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3], a4 = acc[4], a5 = acc[5];
  __m256 a6 = acc[6], a7 = acc[7], a8 = acc[8], a9 = acc[9], a10 = acc[10], a11 = acc[11];
  for (std::int64_t i = 0; i < n; ++i) {
    a0 = _mm256_fmadd_ps(a0, x, y), a1 = _mm256_fmadd_ps(a1, x, y), a2 = _mm256_fmadd_ps(a2, x, y);
    a3 = _mm256_fmadd_ps(a3, x, y), a4 = _mm256_fmadd_ps(a4, x, y), a5 = _mm256_fmadd_ps(a5, x, y);
    a6 = _mm256_fmadd_ps(a6, x, y), a7 = _mm256_fmadd_ps(a7, x, y), a8 = _mm256_fmadd_ps(a8, x, y);
    a9 = _mm256_fmadd_ps(a9, x, y), a10 = _mm256_fmadd_ps(a10, x, y), a11 = _mm256_fmadd_ps(a11, x, y);
  }
  a0 = _mm256_add_ps(_mm256_add_ps(a0, a1), _mm256_add_ps(a2, a3));
  a4 = _mm256_add_ps(_mm256_add_ps(a4, a5), _mm256_add_ps(a6, a7));
  a8 = _mm256_add_ps(_mm256_add_ps(a8, a9), _mm256_add_ps(a10, a11));
  return _mm256_cvtss_f32(_mm256_add_ps(a0, _mm256_add_ps(a4, a8)));
}
__attribute__((target("avx512f"), noinline)) float spin_avx512(std::int64_t n) {
  const __m512 x = _mm512_set1_ps(0.999F);
  const __m512 y = _mm512_set1_ps(0.001F);
  __m512 a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x, a10 = x, a11 = x;
  for (std::int64_t i = 0; i < n; ++i) {
    a0 = _mm512_fmadd_ps(a0, x, y), a1 = _mm512_fmadd_ps(a1, x, y), a2 = _mm512_fmadd_ps(a2, x, y);
    a3 = _mm512_fmadd_ps(a3, x, y), a4 = _mm512_fmadd_ps(a4, x, y), a5 = _mm512_fmadd_ps(a5, x, y);
    a6 = _mm512_fmadd_ps(a6, x, y), a7 = _mm512_fmadd_ps(a7, x, y), a8 = _mm512_fmadd_ps(a8, x, y);
    a9 = _mm512_fmadd_ps(a9, x, y), a10 = _mm512_fmadd_ps(a10, x, y), a11 = _mm512_fmadd_ps(a11, x, y);
  }
  a0 = _mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3));
  a4 = _mm512_add_ps(_mm512_add_ps(a4, a5), _mm512_add_ps(a6, a7));
  a8 = _mm512_add_ps(_mm512_add_ps(a8, a9), _mm512_add_ps(a10, a11));
  return _mm512_cvtss_f32(_mm512_add_ps(a0, _mm512_add_ps(a4, a8)));
}

void fma_peak(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  sdx::ThreadPool pool(threads);
  const bool wide = sdx::cpu_isa() == sdx::Isa::avx512;
  if (!sdx::cpu_features().avx2) return state.SkipWithError("needs AVX2");
  constexpr std::int64_t kSpins = 200000;
  for (auto _ : state) {
    pool.parallel_for(threads, 1, [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) benchmark::DoNotOptimize(wide ? spin_avx512(kSpins) : spin_avx2(kSpins));
    });
  }
  flops(state, static_cast<double>(threads) * kSpins * 12 * 2 * (wide ? 16 : 8));
}
BENCHMARK(fma_peak)->Arg(1)->Arg(2)->UseRealTime();
#endif

void read_bandwidth(benchmark::State& state) {
  sdx::ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr std::int64_t kWords = 32 << 20;  // 256 MB
  const auto memory = sdx::allocate(kWords * 8);
  auto* p = static_cast<std::uint64_t*>(memory.get());
  std::iota(p, p + kWords, std::uint64_t{0});
  for (auto _ : state) {
    pool.parallel_for(kWords, kWords / state.range(0), [&](std::int64_t b, std::int64_t e) {
      std::uint64_t s = 0;
      for (std::int64_t i = b; i < e; ++i) s += p[i];
      benchmark::DoNotOptimize(s);
    });
  }
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(read_bandwidth)->Arg(1)->Arg(2)->UseRealTime();

// m, n, k, which operand is packed ahead (0 none, 1 B, 2 A), threads
void gemm(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  sdx::ThreadPool pool(static_cast<int>(state.range(4)));
  const sdx::PoolScope scope(pool);
  const Floats a(m * k), b(k * n), c(m * n), bias(m + n);
  const Floats pa(static_cast<std::int64_t>(sdx::cpu::packed_a_bytes(m, k) / 4));
  const Floats pb(static_cast<std::int64_t>(sdx::cpu::packed_b_bytes(k, n) / 4));
  sdx::cpu::pack_a_f32(a.data(), k, false, m, k, 1.0F, pa.data());
  sdx::cpu::pack_b_f32(b.data(), n, false, k, n, 1.0F, pb.data());
  sdx::cpu::GemmArgs g;
  g.m = m, g.n = n, g.k = k;
  if (state.range(3) == 2) {
    g.packed_a = pa.data();
  } else {
    g.a = a.data(), g.lda = k;
  }
  if (state.range(3) == 1) {
    g.packed_b = pb.data();
  } else {
    g.b = b.data(), g.ldb = n;
  }
  g.c = c.data(), g.ldc = n;
  g.epilogue.bias = bias.data();
  g.epilogue.act = {Unary::relu};
  for (auto _ : state) sdx::cpu::gemm_f32(g);
  flops(state, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  state.SetBytesProcessed(state.iterations() * k * n * 4);
}
BENCHMARK(gemm)
    ->ArgsProduct({{1024}, {1024}, {1024}, {0, 1, 2}, {1, 2}})
    ->ArgsProduct({{128}, {768}, {768}, {1}, {1, 2}})
    ->ArgsProduct({{128}, {3072}, {768}, {1}, {1, 2}})
    ->ArgsProduct({{256}, {3136}, {64}, {2}, {1, 2}})
    ->ArgsProduct({{512}, {196}, {1024}, {2}, {1, 2}})
    ->ArgsProduct({{2048}, {49}, {512}, {2}, {1, 2}})
    ->ArgsProduct({{128}, {128}, {64}, {0}, {1}})
    ->ArgsProduct({{1, 4, 8}, {4096}, {4096}, {0, 1}, {1, 2}})
    ->UseRealTime();

void unary(benchmark::State& state) {
  sdx::ThreadPool pool(1);
  const sdx::PoolScope scope(pool);
  constexpr std::int64_t kCount = 16384;
  const Floats x(kCount), y(kCount);
  const sdx::cpu::UnarySpec spec{static_cast<Unary>(state.range(0)), 1.0F, 1.0F};
  for (auto _ : state) sdx::cpu::unary_f32(spec, x.data(), y.data(), kCount);
  state.SetItemsProcessed(state.iterations() * kCount);
}
BENCHMARK(unary)
    ->Arg(static_cast<int>(Unary::relu))
    ->Arg(static_cast<int>(Unary::exp))
    ->Arg(static_cast<int>(Unary::tanh))
    ->Arg(static_cast<int>(Unary::sigmoid))
    ->Arg(static_cast<int>(Unary::gelu))
    ->Arg(static_cast<int>(Unary::log));

}  // namespace

BENCHMARK_MAIN();
