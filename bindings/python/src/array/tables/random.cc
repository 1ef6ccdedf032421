// sardonyx.array.random

#include "../random_state.h"
#include "tables.h"

namespace sdx::python::arrays {
namespace {

namespace random = mx::random;
using Key = std::optional<mx::array>;
using Type = std::optional<Dtype>;

mx::array uniform(const mx::array& low, const mx::array& high, const Shape& shape, Type dtype, const Key& key, StreamOrDevice s) {
  return random::uniform(low, high, shape, dtype.value_or(Dtype::float32), key, s);
}
// Real and imaginary parts with half the variance each.
mx::array complex_normal(Shape shape, const Key& loc, const Key& scale, const Key& key, StreamOrDevice s) {
  const Shape whole = shape;
  shape.push_back(2);
  const mx::array half = mx::array(0.70710678118654752, Dtype::float32);
  const mx::array parts = mx::multiply(random::normal(shape, Dtype::float32, std::nullopt, std::nullopt, key, s), half, s);
  mx::array drawn = mx::reshape(mx::view(parts, Dtype::complex64, s), whole, s);
  if (scale) drawn = mx::multiply(drawn, *scale, s);
  return loc ? mx::add(drawn, *loc, s) : drawn;
}

mx::array normal(Shape shape, Type dtype, const Key& loc, const Key& scale, const Key& key, StreamOrDevice s) {
  if (dtype == Dtype::complex64) return complex_normal(std::move(shape), loc, scale, key, s);
  return random::normal(shape, dtype.value_or(Dtype::float32), loc, scale, key, s);
}

mx::array randint(const mx::array& low, const mx::array& high, const Shape& shape, Type dtype, const Key& key, StreamOrDevice s) {
  return random::randint(low, high, shape, dtype.value_or(Dtype::int32), key, s);
}
mx::array bernoulli(const mx::array& p, const std::optional<Shape>& shape, const Key& key, StreamOrDevice s) {
  return random::bernoulli(p, shape, key, s);
}
mx::array gumbel(const Shape& shape, Type dtype, const Key& key, StreamOrDevice s) {
  return random::gumbel(shape, dtype.value_or(Dtype::float32), key, s);
}
mx::array laplace(const Shape& shape, Type dtype, float loc, float scale, const Key& key, StreamOrDevice s) {
  return random::laplace(shape, dtype.value_or(Dtype::float32), loc, scale, key, s);
}
mx::array truncated_normal(const mx::array& lower, const mx::array& upper, const std::optional<Shape>& shape, Type dtype,
                           const Key& key, StreamOrDevice s) {
  return random::truncated_normal(lower, upper, shape, dtype.value_or(Dtype::float32), key, s);
}
mx::array multivariate_normal(const mx::array& mean, const mx::array& cov, const Shape& shape, Type dtype, const Key& key,
                              StreamOrDevice s) {
  return random::multivariate_normal(mean, cov, shape, dtype.value_or(Dtype::float32), key, s);
}
mx::array categorical(const mx::array& logits, int axis, const std::optional<Shape>& shape, std::optional<int> count,
                      const Key& key, StreamOrDevice s) {
  if (shape && count) raise_value_error("[categorical] At most one of shape or num_samples can be specified.");
  if (count && *count == 0) {
    Shape none = logits.shape();
    if (axis < -logits.ndim() || axis >= logits.ndim())
      raise_value_error("[categorical] axis " + std::to_string(axis) + " is out of range");
    none.erase(none.begin() + (axis < 0 ? axis + logits.ndim() : axis));
    none.push_back(0);
    return mx::zeros(none, Dtype::uint32, s);
  }
  random::Samples samples;
  samples.shape = shape;
  samples.count = count;
  return random::categorical(logits, axis, samples, key, s);
}
// The order of random bits, as in MLX.
mx::array permutation(Any x, int axis, Key key, StreamOrDevice s) {
  const auto order = [&](std::int64_t n) {
    if (n < 0) raise_value_error("[permutation] expected a number that is not negative, received " + std::to_string(n));
    return mx::argsort(random::bits({n}, 4, key, s), 0, s);
  };
  if (!is_array(x.object) && PyIndex_Check(x.object)) return order(to_integer(x.object));
  const mx::array a = From<mx::array>::get(x.object);
  return mx::take(a, order(a.shape(axis)), axis, s);
}

PyObject* state_object = nullptr;

void set_state_object(Any object) { state_object = Object::of(object.object).release(); }
mx::array read_state() { return random::state().read().at(0); }
void write_state(mx::array key) { random::state().write({std::move(key)}); }

}  // namespace

bool is_random_state(PyObject* object) { return object == state_object && object != nullptr; }
mx::array random_state() { return read_state(); }
void set_random_state(mx::array key) { write_state(std::move(key)); }

std::vector<Definition> random_functions() {
  return {
      def<&random::seed>("seed(seed)"),
      def<&random::key>("key(seed)"),
      def<&random::split>("split(key, num=2, stream=None)"),
      def<&random::bits>("bits(shape=(), width=4, key=None, stream=None)"),
      def<&uniform>("uniform(low=0, high=1, shape=(), dtype=None, key=None, stream=None)"),
      def<&normal>("normal(shape=(), dtype=None, loc=None, scale=None, key=None, stream=None)"),
      def<&randint>("randint(low, high, shape=(), dtype=None, key=None, stream=None)"),
      def<&bernoulli>("bernoulli(p=0.5, shape=None, key=None, stream=None)"),
      def<&gumbel>("gumbel(shape=(), dtype=None, key=None, stream=None)"),
      def<&laplace>("laplace(shape=(), dtype=None, loc=0.0, scale=1.0, key=None, stream=None)"),
      def<&truncated_normal>("truncated_normal(lower, upper, shape=None, dtype=None, key=None, stream=None)"),
      def<&multivariate_normal>("multivariate_normal(mean, cov, shape=(), dtype=None, key=None, stream=None)"),
      def<&categorical>("categorical(logits, axis=-1, shape=None, num_samples=None, key=None, stream=None)"),
      def<&permutation>("permutation(x, axis=0, key=None, stream=None)"),
      def<&set_state_object>("_set_state_object(object)"),
      def<&read_state>("_read_state()"),
      def<&write_state>("_write_state(key)"),
  };
}

}  // namespace sdx::python::arrays
