// Data sets, and the order of their samples.

#include <numeric>
#include <sdx/train/fit.hpp>
#include <utility>

#include "train/loop/random.h"

namespace sdx::train {

Dataset::~Dataset() = default;

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  loop::Random random(seed, {static_cast<std::uint64_t>(epoch), loop::kOrder});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);  // Fisher and Yates
  return order;
}

}  // namespace sdx::train
