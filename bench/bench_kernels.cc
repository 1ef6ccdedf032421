// Speed of the CPU kernels. The counter "FLOP/s" is to be read against the benchmark "fma_peak" of the same run; "bytes/s"
// against "read_bandwidth". Thread counts are the last argument.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/memory.h"
#include "base/system/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/paged.h"
#include "kernels/cpu/conv/plain/conv.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/nbits/nbits.h"
#include "kernels/cpu/rows/norm.h"
#include "kernels/cpu/rows/softmax.h"

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
  const Floats pa(m * k);
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

// channels in and out, height = width, kernel, stride, algorithm, threads; FLOP/s count the plain convolution's operations.
void conv(benchmark::State& state) {
  using sdx::cpu::ConvAlgorithm;
  sdx::cpu::ConvShape s;
  s.in_channels = state.range(0), s.out_channels = state.range(1);
  const auto algorithm = static_cast<ConvAlgorithm>(state.range(5));
  if (algorithm == ConvAlgorithm::depthwise) s.groups = s.in_channels;
  for (int i = 1; i < 3; ++i) {
    s.in[i] = state.range(2), s.kernel[i] = state.range(3), s.stride[i] = state.range(4), s.pad[i] = (s.kernel[i] - 1) / 2;
    s.out[i] = (s.in[i] + 2 * s.pad[i] - s.kernel[i]) / s.stride[i] + 1;
  }
  sdx::ThreadPool pool(static_cast<int>(state.range(6)));
  const sdx::PoolScope scope(pool);
  const std::int64_t taps = s.in_channels / s.groups * s.kernel[1] * s.kernel[2];
  const std::int64_t out = s.out[1] * s.out[2];
  const Floats x(s.in_channels * s.in[1] * s.in[2]), w(s.out_channels * taps), y(s.out_channels * out), bias(s.out_channels);
  const Floats packed(static_cast<std::int64_t>(sdx::cpu::conv_packed_bytes(algorithm, s) / 4));
  sdx::cpu::conv_pack_f32(algorithm, s, w.data(), packed.data());
  for (auto _ : state) {
    sdx::cpu::conv_f32(algorithm, s, x.data(), packed.data(), bias.data(), nullptr, {Unary::relu}, y.data());
  }
  flops(state, 2.0 * static_cast<double>(s.out_channels * out * taps));
}
BENCHMARK(conv)
    ->ArgsProduct({{64}, {64}, {56}, {3}, {1}, {0, 2, 3}, {1, 2}})
    ->ArgsProduct({{128}, {128}, {28}, {3}, {1}, {0, 2, 3}, {1, 2}})
    ->ArgsProduct({{256}, {256}, {14}, {3}, {1}, {0, 2, 3}, {1, 2}})
    ->ArgsProduct({{512}, {512}, {7}, {3}, {1}, {0, 2, 3}, {1, 2}})
    ->ArgsProduct({{3}, {64}, {224}, {7}, {2}, {0}, {1, 2}})
    ->ArgsProduct({{256}, {64}, {56}, {1}, {1}, {0}, {1, 2}})
    ->ArgsProduct({{1024}, {256}, {14}, {1}, {1}, {0}, {1, 2}})
    ->ArgsProduct({{512}, {2048}, {7}, {1}, {1}, {0}, {1, 2}})
    ->ArgsProduct({{96}, {96}, {112}, {3}, {1, 2}, {1}, {1, 2}})
    ->ArgsProduct({{384}, {384}, {14}, {3}, {1}, {1}, {1, 2}})
    ->UseRealTime();

// rows, bits, threads; bytes of packed weights
void nbits(benchmark::State& state) {
  constexpr std::int64_t kSize = 4096;
  sdx::ThreadPool pool(static_cast<int>(state.range(2)));
  const sdx::PoolScope scope(pool);
  const Floats b(kSize * kSize / 4), scales(kSize * kSize / 32), a(state.range(0) * kSize), c(state.range(0) * kSize);
  sdx::cpu::NBitsSource source;
  source.k = source.n = kSize;
  source.bits = static_cast<int>(state.range(1));
  source.b = b.data(), source.scales = scales.data();
  const Floats packed(static_cast<std::int64_t>(sdx::cpu::nbits_packed_bytes(source) / 4));
  sdx::cpu::nbits_pack(source, packed.data());
  sdx::cpu::NBitsArgs args;
  args.m = state.range(0), args.n = args.k = args.lda = args.ldc = kSize, args.bits = source.bits;
  args.a = a.data(), args.packed = packed.data(), args.c = c.data();
  for (auto _ : state) sdx::cpu::nbits_gemm(args);
  flops(state, 2.0 * static_cast<double>(kSize * kSize * state.range(0)));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(sdx::cpu::nbits_packed_bytes(source)));
}
BENCHMARK(nbits)->ArgsProduct({{1, 4, 64}, {4, 8}, {1, 2}})->UseRealTime();

// queries = keys, threads; 12 heads of 64
void attention(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  sdx::ThreadPool pool(static_cast<int>(state.range(1)));
  const sdx::PoolScope scope(pool);
  const Floats q(n * 768), k(n * 768), v(n * 768), out(n * 768);
  sdx::cpu::AttentionArgs a;
  a.heads = a.kv_heads = 12, a.queries = a.keys = n, a.head_size = a.v_head_size = 64, a.scale = 0.125F;
  a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
  a.q_head = a.k_head = a.v_head = a.out_head = 64;
  a.q_row = a.k_row = a.v_row = a.out_row = 768;
  for (auto _ : state) sdx::cpu::attention_f32(a);
  flops(state, 4.0 * static_cast<double>(n * n * 768));
}
BENCHMARK(attention)->ArgsProduct({{128, 1024}, {1, 2}})->UseRealTime();

// Keys and values of `texts` texts with `past` rows each, in blocks of 64 in no order, and one query each, or 512.
struct Pool {
  Pool(std::int64_t heads, std::int64_t kv, std::int64_t texts, std::int64_t past, std::int64_t fresh, sdx::DataType type)
      : width((past + fresh + 63) / 64),
        keys(texts * width * 64 * kv * 64),
        values(texts * width * 64 * kv * 64),
        scales(texts * width * 64 * kv),
        q(texts * fresh * heads * 64),
        out(texts * fresh * heads * 64),
        table(static_cast<std::size_t>(texts * width)) {
    const auto blocks = texts * width;
    for (std::int64_t i = 0; i < blocks; ++i) table[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * 7919 % blocks);
    for (std::int64_t i = 0; i <= texts; ++i) starts.push_back(i * fresh), pasts.push_back(past);
    args.heads = heads, args.kv_heads = kv, args.head_size = args.block_size = 64, args.scale = 0.125F;
    const bool bytes = type == sdx::DataType::int8;
    args.keys = {type, keys.data(), bytes ? scales.data() : nullptr};
    args.values = {type, values.data(), bytes ? scales.data() : nullptr};
    const Floats x(64 + 251);
    for (std::int64_t row = 0; row < blocks * kv * 64; ++row) {
      sdx::cpu::write_paged_row(args.keys, row, x.data() + row % 251, 64);
      sdx::cpu::write_paged_row(args.values, row, x.data() + row * 7 % 251, 64);
    }
    args.texts = texts, args.starts = starts.data(), args.past = pasts.data(), args.table = table.data(),
    args.table_width = width;
    args.q = q.data(), args.q_row = heads * 64, args.out = out.data();
  }
  std::int64_t width;
  Floats keys, values, scales, q, out;
  std::vector<std::int32_t> table;
  std::vector<std::int64_t> starts, pasts;
  sdx::cpu::PagedArgs args;
};

// heads, key heads, texts, past, new tokens, type of the caches, threads
void paged(benchmark::State& state) {
  const std::int64_t heads = state.range(0), kv = state.range(1), texts = state.range(2), past = state.range(3);
  const std::int64_t fresh = state.range(4);
  const auto type = static_cast<sdx::DataType>(state.range(5));
  sdx::ThreadPool threads(static_cast<int>(state.range(6)));
  const sdx::PoolScope scope(threads);
  const Pool pool(heads, kv, texts, past, fresh, type);
  for (auto _ : state) sdx::cpu::paged_attention_f32(pool.args);
  flops(state, 4.0 * static_cast<double>(texts * fresh * (past + (fresh + 1) / 2) * heads * 64));
  const std::int64_t element = type == sdx::DataType::float32 ? 4 : type == sdx::DataType::int8 ? 1 : 2;
  state.SetBytesProcessed(state.iterations() * texts * (past + fresh) * kv * 128 * element);
}
// The same without blocks: each text's keys and values lie in one piece.
void contiguous(benchmark::State& state) {
  const std::int64_t heads = state.range(0), kv = state.range(1), texts = state.range(2), past = state.range(3);
  const std::int64_t fresh = state.range(4), total = past + fresh;
  sdx::ThreadPool threads(static_cast<int>(state.range(6)));
  const sdx::PoolScope scope(threads);
  const Floats q(texts * fresh * heads * 64), out(texts * fresh * heads * 64);
  const Floats k(texts * kv * total * 64), v(texts * kv * total * 64);
  sdx::cpu::AttentionArgs a;
  a.batch = texts, a.heads = heads, a.kv_heads = kv, a.queries = fresh, a.keys = total, a.head_size = a.v_head_size = 64;
  a.scale = 0.125F, a.causal = true, a.causal_offset = past;
  a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
  a.q_head = a.out_head = a.k_row = a.v_row = 64, a.q_row = a.out_row = heads * 64;
  a.q_batch = a.out_batch = fresh * a.q_row, a.k_head = a.v_head = total * 64, a.k_batch = a.v_batch = kv * a.k_head;
  for (auto _ : state) sdx::cpu::attention_f32(a);
  flops(state, 4.0 * static_cast<double>(texts * fresh * (past + (fresh + 1) / 2) * heads * 64));
  state.SetBytesProcessed(state.iterations() * texts * total * kv * 512);
}
// SmolLM2-135M's heads, and those of a Llama of 1 billion parameters.
void text_cases(benchmark::internal::Benchmark* b, const std::vector<sdx::DataType>& types) {
  for (const auto& [heads, kv] : {std::pair<std::int64_t, std::int64_t>{9, 3}, {32, 8}}) {
    for (const auto& [texts, past, fresh] :
         {std::array<std::int64_t, 3>{1, 127, 1}, {1, 2047, 1}, {16, 2047, 1}, {1, 0, 512}, {1, 1536, 512}}) {
      for (const sdx::DataType type : types) {
        for (const std::int64_t threads : {1, 2})
          b->Args({heads, kv, texts, past, fresh, static_cast<std::int64_t>(type), threads});
      }
    }
  }
  b->UseRealTime();
}
BENCHMARK(paged)->Apply([](benchmark::internal::Benchmark* b) {
  text_cases(b, {sdx::DataType::float32, sdx::DataType::float16, sdx::DataType::bfloat16, sdx::DataType::int8});
});
BENCHMARK(contiguous)->Apply([](benchmark::internal::Benchmark* b) { text_cases(b, {sdx::DataType::float32}); });

void softmax(benchmark::State& state) {
  sdx::ThreadPool pool(1);
  const sdx::PoolScope scope(pool);
  const Floats x(64 * 1000), y(64 * 1000);
  for (auto _ : state) sdx::cpu::softmax_f32(x.data(), y.data(), 64, 1000, 1);
  state.SetItemsProcessed(state.iterations() * 64000);
}
BENCHMARK(softmax);

void lrn(benchmark::State& state) {
  sdx::ThreadPool pool(1);
  const sdx::PoolScope scope(pool);
  const Floats x(96 * 55 * 55), y(96 * 55 * 55);
  for (auto _ : state) sdx::cpu::lrn_f32(x.data(), y.data(), 1, 96, 55 * 55, 5, 1e-4F, 0.75F, 1.0F);
  state.SetItemsProcessed(state.iterations() * 96 * 55 * 55);
}
BENCHMARK(lrn);

}  // namespace

BENCHMARK_MAIN();
