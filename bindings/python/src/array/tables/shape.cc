// Shapes and indexing.

#include <algorithm>
#include <numeric>

#include "../indexing.h"
#include "tables.h"

namespace sdx::python::arrays {
namespace {

using Axes = std::optional<std::vector<int>>;
using Axis = std::optional<int>;

// Arrays never change, so that they may share their elements: copy=True needs none either.
mx::array reshape(const mx::array& a, Shape shape, std::optional<bool>, StreamOrDevice s) {
  return mx::reshape(a, std::move(shape), s);
}
mx::array expand_dims(const mx::array& a, Any axis, StreamOrDevice s) { return mx::expand_dims(a, to_ints(axis.object), s); }
mx::array squeeze(const mx::array& a, const Axes& axis, StreamOrDevice s) { return mx::squeeze(a, axis, s); }

std::vector<mx::array> rest_arrays(const Rest& rest) {
  std::vector<mx::array> arrays;
  for (std::size_t i = 0; i < rest.count; ++i) arrays.push_back(From<mx::array>::get(rest.items[i]));
  return arrays;
}

Object broadcast_arrays(Rest arrays, StreamOrDevice s) { return wrap_tuple(mx::broadcast_arrays(rest_arrays(arrays), s)); }

Shape broadcast_shapes(Rest shapes) {
  if (shapes.count == 0) return {};
  std::vector<Shape> all;
  for (std::size_t i = 0; i < shapes.count; ++i) all.push_back(to_shape(shapes.items[i]));
  return mx::broadcast_shapes(all);
}

template <auto F>
Object at_least(Rest arrays, StreamOrDevice s) {
  std::vector<mx::array> out;
  for (const mx::array& a : rest_arrays(arrays)) out.push_back(F(a, s));
  return out.size() == 1 ? wrap(out[0]) : wrap_list(out);
}

Object split(const mx::array& a, Any parts, int axis, StreamOrDevice s) {
  if (PyIndex_Check(parts.object)) return wrap_list(mx::split(a, exact_int(parts.object), axis, s));
  return wrap_list(mx::split(a, to_shape(parts.object), axis, s));
}

Object unstack(const mx::array& x, int axis, StreamOrDevice s) { return wrap_tuple(mx::unstack(x, axis, s)); }

mx::array stack(std::vector<mx::array> arrays, Axis axis, StreamOrDevice s) {
  if (axis) return mx::stack(arrays, *axis, s);
  for (mx::array& a : arrays) a = mx::flatten(a, 0, -1, s);
  return mx::stack(arrays, 0, s);
}

mx::array concatenate(const std::vector<mx::array>& arrays, Axis axis, StreamOrDevice s) {
  return mx::concatenate(arrays, axis, s);
}

mx::array take(const mx::array& a, Any indices, Axis axis, StreamOrDevice s) {
  if (!is_array(indices.object) && PyIndex_Check(indices.object)) return mx::take(a, to_integer(indices.object), axis, s);
  return mx::take(a, From<mx::array>::get(indices.object), axis, s);
}

// One shift and several axes, or several shifts of one axis or of all, which add up.
mx::array roll(const mx::array& a, Any shift, Axes axis, StreamOrDevice s) {
  Shape by = to_shape(shift.object);
  if (by.size() > 1 && (!axis || axis->size() == 1)) by = {std::accumulate(by.begin(), by.end(), std::int64_t{0})};
  if (axis && by.size() == 1) by.assign(axis->size(), by[0]);
  return mx::roll(a, by, axis, s);
}

std::pair<int, int> both_sides(PyObject* o) {
  const std::vector<int> v = to_ints(o);
  if (v.size() == 1) return {v[0], v[0]};
  if (v.size() != 2) raise_value_error("[pad] a width is one number or a pair");
  return {v[0], v[1]};
}

// A number, a pair for all axes, or one of these for each axis.
mx::array pad(const mx::array& a, Any width, const std::string& mode, Any constant, StreamOrDevice s) {
  const mx::array value =
      is_number(constant.object) ? to_weak(constant.object, a.dtype()) : From<mx::array>::get(constant.object);
  if (PyIndex_Check(width.object)) return mx::pad(a, exact_int(width.object), mode, value, s);
  const std::vector<Object> parts = sdx::python::to_list(width.object, [](PyObject* o) { return Object::of(o); });
  std::vector<std::pair<int, int>> widths;
  if (!parts.empty() && PyIndex_Check(parts[0].get()) && parts.size() <= 2) {
    widths.push_back(both_sides(width.object));
  } else {
    for (const Object& part : parts) widths.push_back(both_sides(part.get()));
  }
  return mx::pad(a, widths, mode, value, s);
}

mx::array slice(const mx::array& a, const mx::array& start, const std::vector<int>& axes, const Shape& size, StreamOrDevice s) {
  return mx::slice(a, start, axes, size, s);
}
mx::array slice_update(const mx::array& a, const mx::array& update, const mx::array& start, const std::vector<int>& axes,
                       StreamOrDevice s) {
  return mx::slice_update(a, update, start, axes, s);
}

mx::array trace(const mx::array& a, int offset, int axis1, int axis2, std::optional<Dtype> dtype, StreamOrDevice s) {
  return mx::trace(a, offset, axis1, axis2, dtype.value_or(Dtype::undefined), s);
}

mx::array kron(const mx::array& a, const mx::array& b, StreamOrDevice s) {
  if (a.size() == 0 || b.size() == 0) raise_value_error("[kron] an array has no elements");
  return mx::kron(a, b, s);
}

// Implements array.at: a[key] with values combined by mode (0 set, 1 add, 2 subtract, 3 multiply, 4 divide, 5 maximum, 6
// minimum).
mx::array updated(const mx::array& a, Any key, Any values, int mode) {
  return mx::index_update(a, to_index(key.object), to_values(values.object, a.dtype()), static_cast<mx::Update>(mode));
}

// One axis, or several at once, as the standard has it.
mx::array moveaxis(const mx::array& a, Any source, Any destination, StreamOrDevice s) {
  if (PyIndex_Check(source.object)) return mx::moveaxis(a, exact_int(source.object), exact_int(destination.object), s);
  const auto settled = [&](PyObject* o) {
    std::vector<int> axes = to_ints(o);
    for (int& axis : axes) {
      if (axis < -a.ndim() || axis >= a.ndim()) raise_value_error("[moveaxis] axis " + std::to_string(axis) + " is out of range");
      axis = axis < 0 ? axis + a.ndim() : axis;
    }
    return axes;
  };
  const std::vector<int> from = settled(source.object), to = settled(destination.object);
  if (from.size() != to.size()) raise_value_error("[moveaxis] as many sources as destinations are expected");
  std::vector<int> order(static_cast<std::size_t>(a.ndim()), -1);
  for (std::size_t i = 0; i < to.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  int next = 0;
  for (int& place : order) {
    if (place >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    place = next++;
  }
  return mx::transpose(a, order, s);
}

Object nonzero(const mx::array& a) {
  if (a.ndim() == 0) raise_value_error("[nonzero] an array without axes has no positions");
  const mx::array flags = mx::astype(a, Dtype::boolean);
  if (!flags.is_evaluated()) evaluate({&flags, 1});  // while other threads go on
  return wrap_tuple(mx::nonzero(flags));
}

}  // namespace

std::vector<Definition> shape_functions() {
  return {
      def<&reshape>("reshape(a, /, shape, *, copy=None, stream=None)"),
      def<&mx::flatten>("flatten(a, /, start_axis=0, end_axis=-1, *, stream=None)"),
      def<&mx::unflatten>("unflatten(a, /, axis, shape, *, stream=None)"),
      def<&squeeze>("squeeze(a, /, axis=None, *, stream=None)"),
      def<&mx::flip>("flip(a, /, axis=None, *, stream=None)"),
      def<&unstack>("unstack(x, /, *, axis=0, stream=None)"),
      def<&expand_dims>("expand_dims(a, /, axis, *, stream=None)"),
      def<&take>("take(a, /, indices, axis=None, *, stream=None)"),
      def<&mx::take_along_axis>("take_along_axis(a, /, indices, axis=-1, *, stream=None)"),
      def<&mx::put_along_axis>("put_along_axis(a, /, indices, values, axis=None, *, stream=None)"),
      def<&moveaxis>("moveaxis(a, /, source, destination, *, stream=None)"),
      def<&mx::swapaxes>("swapaxes(a, /, axis1, axis2, *, stream=None)"),
      def<&mx::transpose>("transpose(a, /, axes=None, *, stream=None)"),
      def<&mx::permute_dims>("permute_dims(a, /, axes=None, *, stream=None)"),
      def<&mx::matrix_transpose>("matrix_transpose(a, /, *, stream=None)"),
      def<&split>("split(a, /, indices_or_sections, axis=0, *, stream=None)"),
      def<&mx::broadcast_to>("broadcast_to(a, /, shape, *, stream=None)"),
      def<&broadcast_arrays>("broadcast_arrays(*arrays, stream=None)"),
      def<&broadcast_shapes>("broadcast_shapes(*shapes)"),
      def<&concatenate>("concatenate(arrays, axis=0, *, stream=None)"),
      def<&stack>("stack(arrays, axis=0, *, stream=None)"),
      def<&mx::repeat>("repeat(array, repeats, axis=None, *, stream=None)"),
      def<&pad>("pad(a, pad_width, mode='constant', constant_values=0, *, stream=None)"),
      def<&mx::as_strided>("as_strided(a, /, shape=None, strides=None, offset=0, *, stream=None)"),
      def<&mx::tile>("tile(a, reps, /, *, stream=None)"),
      def<&mx::diagonal>("diagonal(a, offset=0, axis1=0, axis2=1, stream=None)"),
      def<&mx::diag>("diag(a, /, k=0, *, stream=None)"),
      def<&trace>("trace(a, /, offset=0, axis1=0, axis2=1, dtype=None, *, stream=None)"),
      def<&at_least<&mx::atleast_1d>>("atleast_1d(*arys, stream=None)"),
      def<&at_least<&mx::atleast_2d>>("atleast_2d(*arys, stream=None)"),
      def<&at_least<&mx::atleast_3d>>("atleast_3d(*arys, stream=None)"),
      def<&roll>("roll(a, /, shift, axis=None, *, stream=None)"),
      def<&slice>("slice(a, start_indices, axes, slice_size, *, stream=None)"),
      def<&slice_update>("slice_update(a, update, start_indices, axes, *, stream=None)"),
      def<&mx::contiguous>("contiguous(a, /, allow_col_major=False, *, stream=None)"),
      def<&kron>("kron(a, b, *, stream=None)"),
      def<&nonzero>("nonzero(x, /)"),
      def<&updated>("_updated(a, key, values, mode, /)"),
  };
}

}  // namespace sdx::python::arrays
