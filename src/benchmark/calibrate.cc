#include "benchmark/calibrate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "benchmark/load.h"

namespace sdx::benchmark {
namespace {

// Eight chains keep the multipliers busy as a matrix product does.
double arithmetic() {
  double chain[8] = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
  for (int i = 0; i < 100'000; ++i) {
    for (double& c : chain) c = c * 0.999999 + 1e-6;
  }
  double sum = 0;
  for (const double c : chain) sum += c;
  return sum;
}

std::uint64_t reading(const std::vector<std::uint64_t>& memory) {
  std::uint64_t sum = 0;
  for (const std::uint64_t v : memory) sum += v;
  return sum;
}

constexpr int kTurns = 3;

// All threads begin a turn together. A turn takes as long as its slowest thread.
template <class F>
std::int64_t fastest(int threads, const F& work) {
  std::vector<std::array<std::int64_t, kTurns>> times(static_cast<std::size_t>(threads));
  std::atomic<int> arrived{0};
  const auto turns = [&](std::size_t thread) {
    for (int turn = 0; turn < kTurns; ++turn) {
      arrived.fetch_add(1);
      while (arrived.load() < threads * (turn + 1)) std::this_thread::yield();
      const std::int64_t start = now_ns();
      [[maybe_unused]] const volatile auto result = work();
      times[thread][static_cast<std::size_t>(turn)] = now_ns() - start;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < times.size(); ++i) others.emplace_back(turns, i);
  turns(0);
  others.clear();
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    std::int64_t slowest = 0;
    for (const auto& t : times) slowest = std::max(slowest, t[turn]);
    best = std::min(best, slowest);
  }
  return best;
}

}  // namespace

Calibration calibrate(int threads) {
  constexpr int kMost = 256;
  threads = std::clamp(threads, 1, kMost);
  static const std::vector<std::uint64_t> memory(std::size_t{1} << 19, 1);
  return {fastest(threads, arithmetic), fastest(threads, [] { return reading(memory); })};
}

}  // namespace sdx::benchmark
