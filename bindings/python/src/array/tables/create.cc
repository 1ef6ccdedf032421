// Arrays from shapes and numbers.

#include <algorithm>
#include <cmath>

#include "tables.h"

namespace sdx::python::arrays {
namespace {

using Type = std::optional<Dtype>;

Dtype or_float(Type t) { return t.value_or(Dtype::float32); }

// The standard's `device` and MLX's `stream`.
const StreamOrDevice& either(const StreamOrDevice& device, const StreamOrDevice& stream) {
  return stream.index() == 0 ? device : stream;
}

mx::array full(const Shape& shape, Any value, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::full(shape, is_number(value.object) ? to_array(value.object, dtype) : From<mx::array>::get(value.object), dtype,
                  either(device, stream));
}
mx::array full_like(const mx::array& a, Any value, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  const Dtype type = dtype.value_or(a.dtype());
  return mx::full_like(a, is_number(value.object) ? to_array(value.object, type) : From<mx::array>::get(value.object), type,
                       either(device, stream));
}
mx::array zeros(const Shape& shape, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::zeros(shape, or_float(dtype), either(device, stream));
}
mx::array ones(const Shape& shape, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::ones(shape, or_float(dtype), either(device, stream));
}
mx::array eye(int n, std::optional<int> m, int k, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::eye(n, m, k, or_float(dtype), either(device, stream));
}
mx::array identity(int n, Type dtype, StreamOrDevice s) { return mx::identity(n, or_float(dtype), s); }
mx::array tri(int n, std::optional<int> m, int k, Type dtype, StreamOrDevice s) { return mx::tri(n, m, k, or_float(dtype), s); }

// Whole numbers in steps that are none, as MLX has it: the first two are cut, and their difference is the step.
mx::array cut_range(double from, double to, double by, Dtype dtype, const StreamOrDevice& s) {
  const double count = std::max(0.0, std::ceil((to - from) / by));
  const double first = std::trunc(from), step = std::trunc(from + by) - first;
  if (step == 0) return mx::full({static_cast<std::int64_t>(count)}, mx::array(first, dtype), dtype, s);
  return mx::arange(first, first + count * step, step, dtype, s);
}

// arange(stop), arange(start, stop), arange(start, stop, step): whole numbers give int32, or int64 where they need it.
mx::array arange(Any start, Any stop, Any step, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  bool whole = true, wide = false;
  const auto value = [&](PyObject* o, double otherwise) {
    if (o == Py_None) return otherwise;
    const Object number = is_array(o) ? item(array_of(o)) : Object::of(o);
    const double v = to_double(number.get());
    whole = whole && PyIndex_Check(number.get());
    wide = wide || v > INT32_MAX || v < INT32_MIN;
    return v;
  };
  const bool only_stop = stop.object == Py_None || start.object == Py_None;
  const double from = only_stop ? 0 : value(start.object, 0);
  double to = value(!only_stop || stop.object != Py_None ? stop.object : start.object, 0);
  double by = value(step.object, 1);
  if (std::isnan(from) || std::isnan(to) || std::isnan(by) || std::isinf(from) || std::isinf(to) || by == 0) {
    raise_value_error("[arange] Cannot compute length.");
  }
  if (std::isinf(by)) {  // at most the first
    by = by > 0 ? 1 : -1;
    to = (to - from) * by > 0 ? from + by : from;
  }
  const Dtype natural = !whole ? Dtype::float32 : wide ? Dtype::int64 : Dtype::int32;
  const Dtype type = dtype.value_or(natural);
  if (!whole && is_integer(type)) return cut_range(from, to, by, type, either(device, stream));
  return mx::arange(from, to, by, type, either(device, stream));
}

mx::array linspace(Any start, Any stop, std::optional<int> num, bool endpoint, Type dtype, StreamOrDevice device,
                   StreamOrDevice stream) {
  const auto value = [](PyObject* o) { return is_array(o) ? to_double(item(array_of(o)).get()) : to_double(o); };
  return mx::linspace(value(start.object), value(stop.object), num.value_or(50), or_float(dtype), endpoint,
                      either(device, stream));
}

mx::array zeros_like(const mx::array& a, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::zeros_like(a, dtype, either(device, stream));
}
mx::array ones_like(const mx::array& a, Type dtype, StreamOrDevice device, StreamOrDevice stream) {
  return mx::ones_like(a, dtype, either(device, stream));
}

Object meshgrid(Rest arrays, std::optional<bool> sparse, const std::optional<std::string>& indexing, StreamOrDevice s) {
  std::vector<mx::array> all;
  for (std::size_t i = 0; i < arrays.count; ++i) all.push_back(From<mx::array>::get(arrays.items[i]));
  return wrap_tuple(mx::meshgrid(all, sparse.value_or(false), indexing.value_or("xy"), s));
}

Object depends(Any inputs, Any dependencies) {
  const auto listed = [](PyObject* o) {
    return is_array(o) ? std::vector<mx::array>{array_of(o)} : From<std::vector<mx::array>>::get(o);
  };
  const std::vector<mx::array> out = mx::depends(listed(inputs.object), listed(dependencies.object));
  return is_array(inputs.object) ? wrap(out[0]) : wrap_list(out);
}

}  // namespace

std::vector<Definition> create_functions() {
  return {
      def<&full>("full(shape, fill_value|vals, dtype=None, *, device=None, stream=None)"),
      def<&full_like>("full_like(a, fill_value|vals, dtype=None, *, device=None, stream=None)"),
      def<&zeros>("zeros(shape, dtype=None, *, device=None, stream=None)"),
      def<&zeros_like>("zeros_like(a, /, dtype=None, *, device=None, stream=None)"),
      def<&ones>("ones(shape, dtype=None, *, device=None, stream=None)"),
      def<&ones_like>("ones_like(a, /, dtype=None, *, device=None, stream=None)"),
      def<&eye>("eye(n, m=None, k=0, dtype=None, *, device=None, stream=None)"),
      def<&identity>("identity(n, dtype=None, *, stream=None)"),
      def<&tri>("tri(n, m=None, k=0, dtype=None, *, stream=None)"),
      def<&mx::tril>("tril(x, k=0, *, stream=None)"),
      def<&mx::triu>("triu(x, k=0, *, stream=None)"),
      def<&arange>("arange(start=None, stop=None, step=None, dtype=None, *, device=None, stream=None)"),
      def<&linspace>("linspace(start, stop, num=50, endpoint=True, dtype=None, device=None, stream=None)"),
      def<&meshgrid>("meshgrid(*arrays, sparse=False, indexing='xy', stream=None)"),
      def<&mx::bartlett>("bartlett(M, *, stream=None)"),
      def<&mx::blackman>("blackman(M, *, stream=None)"),
      def<&mx::hamming>("hamming(M, *, stream=None)"),
      def<&mx::hanning>("hanning(M, *, stream=None)"),
      def<&depends>("depends(inputs, dependencies)"),
  };
}

}  // namespace sdx::python::arrays
