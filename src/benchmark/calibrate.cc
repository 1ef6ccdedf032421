#include "benchmark/calibrate.h"

#include <algorithm>
#include <limits>
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

template <class F>
std::int64_t fastest(const F& work) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t start = now_ns();
    [[maybe_unused]] const volatile auto result = work();
    best = std::min(best, now_ns() - start);
  }
  return best;
}

}  // namespace

Calibration calibrate() {
  static const std::vector<std::uint64_t> memory(std::size_t{1} << 19, 1);
  return {fastest(arithmetic), fastest([] { return reading(memory); })};
}

}  // namespace sdx::benchmark
