// a[…], a[…] = b, len() and iteration.

#include "bind.h"
#include "indexing.h"

namespace sdx::python::arrays {
namespace {

constexpr std::size_t kMostIndices = 4096;

std::optional<std::int64_t> bound_of(const Object& object) {
  if (object.is_none()) return std::nullopt;
  if (!PyIndex_Check(object.get())) raise_value_error("Slice indices must be integers or None.");
  return to_integer(object.get());
}

mx::Index one_index(PyObject* o) {
  if (o == Py_None) return mx::NewAxis{};
  if (o == Py_Ellipsis) return mx::Ellipsis{};
  if (is_array(o)) return array_of(o);
  if (PySlice_Check(o)) {
    const Object slice = Object::of(o);
    return mx::Slice{bound_of(slice.attribute("start")), bound_of(slice.attribute("stop")), bound_of(slice.attribute("step"))};
  }
  if (PyBool_Check(o)) return to_array(o);
  if (PyLong_Check(o)) return to_integer(o);
  if (PyList_Check(o)) {
    const mx::array positions = to_array(o);
    return positions.size() == 0 ? mx::astype(positions, Dtype::int32) : positions;
  }
  if (PyObject_HasAttrString(o, "__array_interface__") != 0 || PyObject_HasAttrString(o, "__mlx_array__") != 0) {
    const mx::array positions = to_array(o);
    if (positions.ndim() == 0 && is_integer(positions.dtype())) return to_integer(item(positions).get());
    return positions;
  }
  if (PyIndex_Check(o)) return to_integer(o);
  raise_value_error("Cannot index an array using the given type " + class_name(o) + ".");
}

// Python ends iteration over arrays by the error, so it must be an IndexError.
void check_range(const mx::array& a, const std::vector<mx::Index>& at) {
  std::size_t axis = 0;
  for (const mx::Index& i : at) {
    if (std::holds_alternative<mx::Ellipsis>(i)) return;
    if (const auto* number = std::get_if<std::int64_t>(&i)) {
      if (axis >= a.shape().size()) return;
      const std::int64_t extent = a.shape()[axis];
      if (*number < -extent || *number >= extent) {
        PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for axis %zd with size %lld", static_cast<long long>(*number),
                     static_cast<Py_ssize_t>(axis), static_cast<long long>(extent));
        throw Raised();
      }
    }
    const auto* positions = std::get_if<mx::array>(&i);
    axis += positions != nullptr && positions->dtype() == Dtype::boolean ? static_cast<std::size_t>(positions->ndim())
            : std::holds_alternative<mx::NewAxis>(i)                     ? 0
                                                                         : 1;
  }
}

// The number of elements that a mask selects is known only when the mask has been computed. This waits for it, while other
// threads continue.
void evaluate_masks(const std::vector<mx::Index>& at) {
  for (const mx::Index& i : at) {
    const auto* positions = std::get_if<mx::array>(&i);
    if (positions != nullptr && positions->dtype() == Dtype::boolean && !positions->is_evaluated()) evaluate({positions, 1});
  }
}

PyObject* get(PyObject* self, PyObject* key) {
  return guarded<PyObject*>(nullptr, [&] {
    const mx::array a = array_of(self);
    const std::vector<mx::Index> at = to_index(key);
    check_range(a, at);
    evaluate_masks(at);
    return wrap(mx::index(a, at)).release();
  });
}

int set(PyObject* self, PyObject* key, PyObject* values) {
  return guarded<int>(-1, [&] {
    if (values == nullptr) raise_type_error("elements of arrays cannot be deleted");
    mx::array& a = array_of(self);
    const std::vector<mx::Index> at = to_index(key);
    check_range(a, at);
    a = mx::index_update(a, at, to_values(values, a.dtype()));
    return 0;
  });
}

Py_ssize_t length(PyObject* self) {
  return guarded<Py_ssize_t>(-1, [&]() -> Py_ssize_t {
    const mx::array& a = array_of(self);
    if (a.ndim() == 0) raise_type_error("len() 0-dimensional array.");
    return static_cast<Py_ssize_t>(a.shape()[0]);
  });
}

// a[i], by the sequence protocol.
PyObject* get_item(PyObject* self, Py_ssize_t i) {
  return guarded<PyObject*>(nullptr, [&] {
    const mx::array& a = array_of(self);
    const std::vector<mx::Index> at{static_cast<std::int64_t>(i)};
    check_range(a, at);
    return wrap(mx::index(a, at)).release();
  });
}

PyObject* iterate(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    if (array_of(self).ndim() == 0) raise_type_error("iteration over a 0-d array");
    return Object::taken(PySeqIter_New(self)).release();
  });
}

}  // namespace

std::vector<mx::Index> to_index(PyObject* key) {
  if (PyTuple_Check(key) == 0) return {one_index(key)};
  const Py_ssize_t count = PyTuple_Size(key);
  if (count > static_cast<Py_ssize_t>(kMostIndices)) raise_value_error("too many indices for an array");
  std::vector<mx::Index> at;
  for (Py_ssize_t i = 0; i < count; ++i) at.push_back(one_index(PyTuple_GetItem(key, i)));
  return at;
}

mx::array to_values(PyObject* values, Dtype dtype) {
  if (is_number(values)) {
    return mx::astype(to_weak(values, dtype), dtype);
  }
  return to_array(values);
}

std::vector<PyType_Slot> index_slots() {
  return {{Py_mp_subscript, reinterpret_cast<void*>(&get)},
          {Py_mp_ass_subscript, reinterpret_cast<void*>(&set)},
          {Py_mp_length, reinterpret_cast<void*>(&length)},
          {Py_sq_item, reinterpret_cast<void*>(&get_item)},
          {Py_tp_iter, reinterpret_cast<void*>(&iterate)}};
}

}  // namespace sdx::python::arrays
