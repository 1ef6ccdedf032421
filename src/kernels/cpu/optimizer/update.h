#pragma once
// One step of an optimiser over many parameters at once, in place.
//
// Dense float32, float alignment. Thread-safe, split over current_pool() by the elements of all parameters together; results do
// not depend on the split. No scratch.

#include <cstdint>
#include <span>

namespace sdx::cpu {

enum class UpdateKind : std::uint8_t { adam, sgd, momentum, rmsprop, rmsprop_momentum, adagrad, lion };

// g is the gradient times `scale`, plus `l2` times w. Then, with m and v the states:
//   adam              m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
//                     w = w before - rate m / (sqrt(v) root + epsilon)
//   sgd               w = w before - rate g
//   momentum          m = beta1 m + fresh g; w = w before - rate (nesterov ? g + beta1 m : m)
//   rmsprop           m = beta2 m + (1 - beta2) g^2; w = w before - rate g / (sqrt(m) + epsilon)
//   rmsprop_momentum  the same m; v = beta1 v + g / (sqrt(m) + epsilon); w = w before - rate v
//   adagrad           m = m + g^2; w = w before - rate g / (sqrt(m) + epsilon)
//   lion              w = w before - rate sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g
// and w = w after. `before` and `after` are 1 or decay the weights.
struct UpdateRule {
  UpdateKind kind = UpdateKind::sgd;
  bool nesterov = false;
  bool clear = false;  // set gradients to 0 after reading them
  float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, l2 = 0, before = 1, after = 1, root = 1, fresh = 1;
  float scale = 1;
};

// One parameter: n elements each. m and v are null if the rule has no such state.
struct UpdateSlice {
  float* w = nullptr;
  float* g = nullptr;  // written only to clear it
  float* m = nullptr;
  float* v = nullptr;
  std::int64_t n = 0;
};

void update_f32(const UpdateRule& rule, std::span<const UpdateSlice> slices);

// to += from.
void accumulate_f32(const float* from, float* to, std::int64_t n);

struct FloatSpan {
  const float* data = nullptr;
  std::int64_t n = 0;
};
// The sum of the squares of all elements, added up in double by blocks of fixed size.
double sum_of_squares_f32(std::span<const FloatSpan> spans);

}  // namespace sdx::cpu
