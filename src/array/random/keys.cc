// Keys, and the process's random state.

#include "array/random/keys.h"

#include <mutex>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/random/threefry.h"
#include "base/system/random_bits.h"

namespace sdx::array {
namespace {

array key_of(detail::Key key) { return array(Tensor::of<std::uint32_t>({2}, {key.first, key.second})); }

// The process's state and its lock. The key is an array, because compiled functions put theirs into it.
struct State {
  std::mutex mutex;
  std::optional<array> key;
};

State& state_of_process() {
  static State& state = *new State;
  return state;
}

array current(State& state) {
  if (!state.key) state.key = random::key(random_bits());
  return *state.key;
}

// Returns the two keys that split() makes; computes them at once if the numbers are known, in 50 ns instead of a graph.
std::pair<array, array> both(const array& key) {
  if (key.is_evaluated() && key.node()->traced == 0) {
    const auto words = key.data<std::uint32_t>();
    const detail::Key k{words[0], words[1]};
    const auto [a, c] = detail::threefry(k, 0, 2);
    const auto [b, d] = detail::threefry(k, 1, 3);
    return {key_of({a, b}), key_of({c, d})};
  }
  const std::vector<array> keys = unstack(random::split(key), 0);
  return {keys[0], keys[1]};
}

}  // namespace

namespace detail {

array key_or_next(const random::OptionalKey& key) {
  if (key) return *key;
  State& state = state_of_process();
  const std::lock_guard lock(state.mutex);
  auto [next, drawn] = both(current(state));
  state.key = std::move(next);
  return drawn;
}

}  // namespace detail

namespace random {

array key(std::uint64_t seed) { return key_of({static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)}); }

void seed(std::uint64_t seed) {
  State& state = state_of_process();
  const std::lock_guard lock(state.mutex);
  state.key = key(seed);
}

Capture state() {
  return {[] {
            State& state = state_of_process();
            const std::lock_guard lock(state.mutex);
            return std::vector<array>{current(state)};
          },
          [](const std::vector<array>& now) {
            State& state = state_of_process();
            const std::lock_guard lock(state.mutex);
            state.key = now.at(0);
          }};
}

array split(const array& key, int num, StreamOrDevice s) {
  if (num < 1) detail::refuse("split", "{} keys were requested", num);
  return bits({num, 2}, 4, key, s);
}

}  // namespace random
}  // namespace sdx::array
