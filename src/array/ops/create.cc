// Arrays from shapes and numbers. Equal elements are one broadcast number; ranges are computed when the program runs.

#include <sdx/array.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "kernels/cpu/elements/create.h"

namespace sdx::array {
namespace detail {
namespace {

void run_range(ops::OpContext& c) { cpu::fill_range(c.input(0), c.input(1), result_tensor(c)); }

// The first number and the step are inputs, because they change from call to call: constants would need a program for each.
void emit_range(Emitter& e) { e.results<run_range>("Range", {e.in(0), e.in(1)}); }

const Kind kRange{.name = "arange", .emit = emit_range, .vjp = flat_vjp};

void run_triangle(ops::OpContext& c) { cpu::fill_triangle(c.input(0), result_tensor(c)); }

// The diagonal is an input for the same reason.
void emit_triangle(Emitter& e) { e.results<run_triangle>("Triangle", {e.in(0)}); }

const Kind kTriangle{.name = "tri", .emit = emit_triangle, .vjp = flat_vjp};

void check_extents(const char* operation, const Shape& shape) {
  for (const std::int64_t extent : shape) {
    if (extent < 0) refuse(operation, "{} is not a shape", to_string(shape));
  }
  if (element_count(shape) < 0) refuse(operation, "{} is not a shape", to_string(shape));
}

array range(double start, double step, std::int64_t count, Dtype type, const StreamOrDevice& s) {
  return make(kRange, type, {count}, {array(start, type), array(step, type)}, {}, s);
}

array triangle(int n, int m, int k, const StreamOrDevice& s) {
  return make(kTriangle, Dtype::boolean, {n, m}, {array(k)}, {}, s);
}

array triangle_of(const char* operation, const array& x, int k, const StreamOrDevice& s) {
  const Shape& shape = x.shape();
  if (shape.size() < 2) refuse(operation, "needs two axes, received shape {}", to_string(shape));
  return make(kTriangle, Dtype::boolean, {shape[shape.size() - 2], shape.back()}, {array(k)}, {}, s);
}

// Returns a window: the function of the angles i * scale / (m - 1). A window of one number is 1; one of none is empty.
template <class F>
array window(int m, double scale, const StreamOrDevice& s, F&& of) {
  if (m < 1) return zeros({0}, Dtype::float32, s);
  if (m == 1) return ones({1}, Dtype::float32, s);
  // float32 would lose up to 1e-5 of the angle of long windows, so angles are float64.
  const array x = multiply(range(0, 1, m, Dtype::float64, s), array(scale / (m - 1), Dtype::float64), s);
  return astype(of(x), Dtype::float32, s);
}

array wide(double value) { return array(value, Dtype::float64); }

}  // namespace
}  // namespace detail

array full(const Shape& shape, const array& vals, std::optional<Dtype> dtype, StreamOrDevice s) {
  detail::check_extents("full", shape);
  return broadcast_to(detail::as_type(vals, dtype.value_or(vals.dtype()), s), shape, s);
}

array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s) { return full(shape, array(0, dtype), std::nullopt, s); }
array ones(const Shape& shape, Dtype dtype, StreamOrDevice s) { return full(shape, array(1, dtype), std::nullopt, s); }

array full_like(const array& a, const array& vals, std::optional<Dtype> dtype, StreamOrDevice s) {
  return full(a.shape(), vals, dtype.value_or(a.dtype()), s);
}
array zeros_like(const array& a, std::optional<Dtype> dtype, StreamOrDevice s) {
  return zeros(a.shape(), dtype.value_or(a.dtype()), s);
}
array ones_like(const array& a, std::optional<Dtype> dtype, StreamOrDevice s) {
  return ones(a.shape(), dtype.value_or(a.dtype()), s);
}

array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s) {
  if (dtype == Dtype::boolean) detail::refuse("arange", "has no ranges of bool");
  if (!std::isfinite(start) || !std::isfinite(stop) || std::isnan(step)) {
    detail::refuse("arange", "from {} to {} by {} has no length", start, stop, step);
  }
  if (step == 0) detail::refuse("arange", "the step must not be 0");
  // With an infinite step, the range holds the first number only.
  const double count =
      std::isinf(step) ? ((step > 0) == (start < stop) && start != stop ? 1 : 0) : std::ceil((stop - start) / step);
  if (count > 0x1p40) detail::refuse("arange", "from {} to {} by {} has too many elements", start, stop, step);
  return detail::range(start, std::isinf(step) ? 0 : step, count > 0 ? static_cast<std::int64_t>(count) : 0, dtype, s);
}

array linspace(double start, double stop, int num, Dtype dtype, bool endpoint, StreamOrDevice s) {
  if (num < 0) detail::refuse("linspace", "{} numbers", num);
  const int parts = endpoint ? num - 1 : num;
  const bool wide = dtype == Dtype::float64 || dtype == Dtype::complex128 || !detail::is_inexact(dtype);
  const Dtype type = wide ? Dtype::float64 : Dtype::float32;
  if (num < 2) return full({num}, array(start, type), dtype, s);
  // Computed from both ends, so that the last number is exactly `stop`.
  const array t = divide(detail::range(0, 1, num, type, s), array(parts, type), s);
  const array mixed = add(multiply(subtract(array(1, type), t, s), array(start, type), s), multiply(t, array(stop, type), s), s);
  return detail::as_type(detail::is_inexact(dtype) ? mixed : floor(mixed, s), dtype, s);
}

array eye(int n, std::optional<int> m, int k, Dtype dtype, StreamOrDevice s) {
  const int columns = m.value_or(n);
  if (n < 0 || columns < 0) detail::refuse("eye", "shape [{},{}]", n, columns);
  const array rows = detail::range(k, 1, n, Dtype::int64, s), across = detail::range(0, 1, columns, Dtype::int64, s);
  return detail::as_type(equal(reshape(rows, {n, 1}, s), across, s), dtype, s);
}

array identity(int n, Dtype dtype, StreamOrDevice s) { return eye(n, n, 0, dtype, s); }

array tri(int n, std::optional<int> m, int k, Dtype dtype, StreamOrDevice s) {
  const int columns = m.value_or(n);
  if (n < 0 || columns < 0) detail::refuse("tri", "shape [{},{}]", n, columns);
  return detail::as_type(detail::triangle(n, columns, k, s), dtype, s);
}

array tril(const array& x, int k, StreamOrDevice s) {
  return where(detail::triangle_of("tril", x, k, s), x, detail::constant_like(x, 0), s);
}
array triu(const array& x, int k, StreamOrDevice s) {
  return where(detail::triangle_of("triu", x, k - 1, s), detail::constant_like(x, 0), x, s);
}

std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse, std::string_view indexing, StreamOrDevice s) {
  if (indexing != "xy" && indexing != "ij") detail::refuse("meshgrid", "indexing \"{}\": expected \"xy\" or \"ij\"", indexing);
  const std::size_t count = arrays.size();
  Shape shape(count);
  std::vector<array> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (arrays[i].ndim() > 1)
      detail::refuse("meshgrid", "array {} has shape {}: expected one axis", i, to_string(arrays[i].shape()));
    const std::size_t axis = indexing == "xy" && count > 1 && i < 2 ? 1 - i : i;
    Shape along(count, 1);
    shape[axis] = along[axis] = arrays[i].size();
    out.push_back(reshape(arrays[i], along, s));
  }
  if (sparse) return out;
  for (array& a : out) a = broadcast_to(a, shape, s);
  return out;
}

array bartlett(int m, StreamOrDevice s) {
  return detail::window(m, 2, s, [](const array& x) { return subtract(detail::wide(1), abs(subtract(x, detail::wide(1)))); });
}
array hanning(int m, StreamOrDevice s) {
  return detail::window(m, std::numbers::pi, s, [](const array& x) { return square(sin(x)); });
}
array hamming(int m, StreamOrDevice s) {
  return detail::window(m, 2 * std::numbers::pi, s,
                        [](const array& x) { return subtract(detail::wide(0.54), multiply(detail::wide(0.46), cos(x))); });
}
array blackman(int m, StreamOrDevice s) {
  return detail::window(m, 2 * std::numbers::pi, s, [](const array& x) {
    const array c = cos(x);
    return add(subtract(detail::wide(0.34), multiply(detail::wide(0.5), c)), multiply(detail::wide(0.16), square(c)));
  });
}

}  // namespace sdx::array
