// Distributions made of uniform numbers and bits, with MLX's operations in MLX's order, so that both round alike.

#include <cmath>
#include <limits>

#include <sdx/array.hpp>
#include <sdx/array/linalg.hpp>

#include "array/ops/common.h"

namespace sdx::array::random {

using detail::as_type;
using detail::broadcast;
using detail::refuse;

namespace {

void need_floating(const char* operation, Dtype dtype) {
  if (!is_floating(dtype)) refuse(operation, "expected a floating-point type, received {}", name(dtype));
}

const array& just_above_minus_one() {
  static const array& value = *new array(std::nextafter(-1.0F, 0.0F));
  return value;
}

}  // namespace

// Numbers are rounded down, not towards 0, so that those around 0 are as likely as others. In float32 the bounds may lie further
// apart than they are: a number outside becomes the nearest one inside.
array randint(const array& low, const array& high, const Shape& shape, Dtype dtype, const OptionalKey& key, StreamOrDevice s) {
  if (detail::is_inexact(dtype)) refuse("randint", "expected an integer type, received {}", name(dtype));
  const array drawn = astype(floor(uniform(low, high, shape, Dtype::float32, key, s), s), dtype, s);
  const array end = as_type(high, detail::promote(high.dtype(), Dtype::int8), s);
  const array last = as_type(subtract(end, array(1, end.dtype()), s), dtype, s);
  return maximum(minimum(drawn, last, s), as_type(low, dtype, s), s);
}

array bernoulli(const array& p, const std::optional<Shape>& shape, const OptionalKey& key, StreamOrDevice s) {
  if (!is_floating(p.dtype())) refuse("bernoulli", "probabilities must be floating-point numbers, received {}", name(p.dtype()));
  const Shape wanted = shape ? *shape : p.shape();
  if (broadcast("bernoulli", wanted, p.shape()) != wanted) {
    refuse("bernoulli", "probabilities of shape {} do not broadcast to {}", to_string(p.shape()), to_string(wanted));
  }
  // Larger than every word, so that p = 1 gives true only.
  const float most =
      std::nextafter(static_cast<float>(std::numeric_limits<std::uint32_t>::max()), std::numeric_limits<float>::max());
  return less(bits(wanted, 4, key, s), multiply(p, array(most), s), s);
}

array gumbel(const Shape& shape, Dtype dtype, const OptionalKey& key, StreamOrDevice s) {
  return negative(log(negative(log(uniform(shape, dtype, key, s), s), s), s), s);
}

array laplace(const Shape& shape, Dtype dtype, float loc, float scale, const OptionalKey& key, StreamOrDevice s) {
  need_floating("laplace", dtype);
  const array u = uniform(just_above_minus_one(), array(1.0F), shape, Dtype::float32, key, s);
  array samples = as_type(multiply(sign(u, s), log1p(negative(abs(u, s), s), s), s), dtype, s);
  if (scale != 1) samples = multiply(array(scale, dtype), samples, s);
  return loc == 0 ? samples : add(array(loc, dtype), samples, s);
}

array truncated_normal(const array& lower, const array& upper, const std::optional<Shape>& shape, Dtype dtype,
                       const OptionalKey& key, StreamOrDevice s) {
  need_floating("truncated_normal", dtype);
  const Shape wanted = shape ? *shape : broadcast("truncated_normal", lower.shape(), upper.shape());
  const array root(std::sqrt(2.0), dtype), low = as_type(lower, dtype, s), high = as_type(upper, dtype, s);
  const array a = erf(divide(low, root, s), s), b = erf(divide(high, root, s), s);
  const array drawn = multiply(root, erfinv(uniform(a, b, wanted, dtype, key, s), s), s);
  return maximum(minimum(high, drawn, s), low, s);
}

array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype, const OptionalKey& key,
                          StreamOrDevice s) {
  if (dtype != Dtype::float32) refuse("multivariate_normal", "expected float32, received {}", name(dtype));
  if (mean.ndim() < 1 || cov.ndim() < 2 || cov.shape(-1) != cov.shape(-2) || mean.shape(-1) != cov.shape(-1)) {
    refuse("multivariate_normal", "expected a mean of shape [..., n] and a covariance of shape [..., n, n], received {} and {}",
           to_string(mean.shape()), to_string(cov.shape()));
  }
  const Shape of_mean(mean.shape().begin(), mean.shape().end() - 1), of_cov(cov.shape().begin(), cov.shape().end() - 2);
  Shape all = broadcast("multivariate_normal", broadcast("multivariate_normal", of_mean, of_cov), shape);
  all.push_back(mean.shape(-1));
  const auto [u, values, v] = linalg::svd(as_type(cov, dtype, s), s);
  const array root = matmul(multiply(u, expand_dims(sqrt(values, s), -2, s), s), v, s);
  const array standard = expand_dims(normal(all, dtype, std::nullopt, std::nullopt, key, s), -2, s);
  return add(mean, squeeze(matmul(standard, root, s), -2, s), s);
}

namespace {

// Draws samples of one distribution: searches for uniform numbers among the running sums of the weights. Needs memory for the
// logits and the samples only. A number below 1 times the last sum may be rounded to that sum, for which there is no place: it is
// kept below.
array from_running_sums(const array& logits, const Shape& shape, const OptionalKey& key, const StreamOrDevice& s) {
  const array x = as_type(logits, detail::promote(logits.dtype(), Dtype::float32), s);
  const array most = max(x, {}, false, s);
  // If a logit is infinite, those that are equal to it are equally likely.
  const array weights = where(isinf(most, s), as_type(equal(x, most, s), x.dtype(), s), exp(subtract(x, most, s), s), s);
  const array sums = cumsum(weights, 0, false, true, std::nullopt, s);
  const array end = take(sums, sums.size() - 1, 0, s);
  const array below = multiply(end, array(1 - 0x1p-23, end.dtype()), s);
  const array at = minimum(multiply(uniform(shape, Dtype::float32, key, s), end, s), below, s);
  // With NaN among the logits, every later sum is NaN, and a search may end behind the last place.
  return minimum(searchsorted(sums, at, "right", s), array(static_cast<std::uint32_t>(sums.size() - 1), Dtype::uint32), s);
}

}  // namespace

array categorical(const array& logits, int axis, const Samples& samples, const OptionalKey& key, StreamOrDevice s) {
  const int along = detail::axis_of("categorical", axis, logits.shape().size());
  if (samples.count && samples.shape) refuse("categorical", "give either a number of samples or their shape, not both");
  array from = logits;
  if (samples.count) from = expand_dims(logits, -1, s);
  Shape wanted = from.shape();
  wanted.erase(wanted.begin() + along);
  if (samples.count) wanted.back() = *samples.count;
  if (samples.shape) {
    if (broadcast("categorical", *samples.shape, wanted) != *samples.shape) {
      refuse("categorical", "rows of shape {} do not broadcast to {}", to_string(wanted), to_string(*samples.shape));
    }
    wanted = *samples.shape;
  }
  const std::int64_t choices = from.shape()[static_cast<std::size_t>(along)];
  if (choices > 0 && from.size() == choices && !wanted.empty())
    return from_running_sums(reshape(from, {choices}, s), wanted, key, s);
  // The sample is the place of the largest sum of logit and Gumbel noise.
  const auto at = static_cast<std::int64_t>(along + 1 + static_cast<int>(wanted.size())) - from.ndim();
  Shape noise = wanted;
  noise.insert(noise.begin() + at, choices);
  return argmax(add(gumbel(noise, Dtype::float32, key, s), from, s), static_cast<int>(at), false, s);
}

array permutation(int n, const OptionalKey& key, StreamOrDevice s) { return argsort(bits({n}, 4, key, s), -1, s); }

array permutation(const array& x, int axis, const OptionalKey& key, StreamOrDevice s) {
  return take(x, permutation(static_cast<int>(x.shape(axis)), key, s), axis, s);
}

}  // namespace sdx::array::random
