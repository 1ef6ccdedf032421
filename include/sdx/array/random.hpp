#pragma once
// Random numbers, identical to MLX 0.32's for the same key, bit by bit where no function rounds. A key is uint32[2]. Results
// depend only on the key, the shape and the element type, not on the machine or the number of threads. Without a key, one is
// taken from the process's random state, which any number of threads may use. Errors: Error(invalid_argument) for keys of other
// types and shapes, and for element types and shapes that do not fit.

#include <cstdint>
#include <optional>
#include <utility>

#include <sdx/array/array.hpp>
#include <sdx/array/transforms.hpp>

namespace sdx::array::random {

using OptionalKey = std::optional<array>;

SDX_API array key(std::uint64_t seed);
// Seeds the process's random state, which initially comes from the system's random numbers.
SDX_API void seed(std::uint64_t seed);
// The process's random state, for compiled functions that draw without a key: they read and change it.
SDX_API Capture state();
// Returns uint32[num, 2]: independent keys.
SDX_API array split(const array& key, int num = 2, StreamOrDevice s = {});

// width: bytes of an element: 1, 2, 4 (uint8, uint16, uint32) or, beyond MLX, 8 (uint64).
SDX_API array bits(const Shape& shape, int width = 4, const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
// Uniform numbers from [low, high), which broadcast to `shape`. Floating types.
SDX_API array uniform(const array& low, const array& high, const Shape& shape = {}, Dtype dtype = Dtype::float32,
                      const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
SDX_API array uniform(const Shape& shape, Dtype dtype = Dtype::float32, const OptionalKey& key = std::nullopt,
                      StreamOrDevice s = {});
// Floating types (float64 has the numbers of float32), and complex64: real and imaginary part with half of the variance each.
SDX_API array normal(const Shape& shape = {}, Dtype dtype = Dtype::float32, const std::optional<array>& loc = std::nullopt,
                     const std::optional<array>& scale = std::nullopt, const OptionalKey& key = std::nullopt,
                     StreamOrDevice s = {});

// Integers from [low, high), drawn as in MLX 0.32 by truncating floats. Above 2^24 not all integers can appear.
SDX_API array randint(const array& low, const array& high, const Shape& shape = {}, Dtype dtype = Dtype::int32,
                      const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
// True with probability p; the shape defaults to that of p.
SDX_API array bernoulli(const array& p = array(0.5F), const std::optional<Shape>& shape = std::nullopt,
                        const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
SDX_API array gumbel(const Shape& shape = {}, Dtype dtype = Dtype::float32, const OptionalKey& key = std::nullopt,
                     StreamOrDevice s = {});
SDX_API array laplace(const Shape& shape = {}, Dtype dtype = Dtype::float32, float loc = 0, float scale = 1,
                      const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
// Normal numbers within [lower, upper]. Without a shape, the result has the shape to which both broadcast.
SDX_API array truncated_normal(const array& lower, const array& upper, const std::optional<Shape>& shape = std::nullopt,
                               Dtype dtype = Dtype::float32, const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
// mean[..., n], cov[..., n, n]: [shape, n].
SDX_API array multivariate_normal(const array& mean, const array& cov, const Shape& shape = {}, Dtype dtype = Dtype::float32,
                                  const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
// Draws positions along `axis` with probabilities proportional to exp(logits): one for each row; num_samples of each, on a new
// last axis; or as many as a shape holds to which the rows broadcast.
struct Samples {
  Samples() = default;
  Samples(int num_samples) : count(num_samples) {}         // NOLINT: implicit on purpose
  Samples(Shape of_shape) : shape(std::move(of_shape)) {}  // NOLINT
  std::optional<int> count;
  std::optional<Shape> shape;
};
SDX_API array categorical(const array& logits, int axis = -1, const Samples& samples = {}, const OptionalKey& key = std::nullopt,
                          StreamOrDevice s = {});
// A random permutation of 0 to n - 1, uint32, or of an array's slices along an axis.
SDX_API array permutation(int n, const OptionalKey& key = std::nullopt, StreamOrDevice s = {});
SDX_API array permutation(const array& x, int axis = 0, const OptionalKey& key = std::nullopt, StreamOrDevice s = {});

}  // namespace sdx::array::random
