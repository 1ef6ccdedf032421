#include "convert.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "../buffer.h"
#include "base/error.h"
#include "dtype.h"
#include "tensor/element.h"

namespace sdx::python::arrays {
namespace {

// The kinds of Python's numbers. A list has the widest kind of its elements.
enum class Scalar : std::uint8_t { boolean, integer, real, complex };

Scalar scalar_of(PyObject* object) {
  if (PyBool_Check(object)) return Scalar::boolean;
  if (PyLong_Check(object)) return Scalar::integer;
  if (PyFloat_Check(object)) return Scalar::real;
  if (PyComplex_Check(object)) return Scalar::complex;
  raise_value_error("Invalid type " + class_name(object) + " received in array initialization.");
}

struct Integer {
  std::uint64_t bits = 0;
  bool wide = false;  // not within int32
  bool negative = false;
  bool beyond_signed = false;
};

Integer integer_of(PyObject* object) {
  const long long v = PyLong_AsLongLong(object);
  if (v == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw Raised();
    PyErr_Clear();
    const unsigned long long u = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred() != nullptr) throw Raised();
    return {u, true, false, true};
  }
  return {static_cast<std::uint64_t>(v), v > INT32_MAX || v < INT32_MIN, v < 0, false};
}

// Whether integers that a type cannot hold wrap around, as in MLX, instead of raising an error.
bool wraps_integers = false;

bool fits(const Integer& v, Dtype dtype) {
  const int bits = bit_width(dtype);
  const bool is_signed = name(dtype)[0] == 'i';
  if (v.negative) return is_signed && static_cast<std::int64_t>(v.bits) >= INT64_MIN >> (64 - bits);
  return v.bits <= (is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits));
}

std::complex<double> complex_of(PyObject* object) {
  if (PyComplex_Check(object)) return {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
  return {to_double(object), 0.0};
}

template <class T>
void store(void* data, std::int64_t at, T v) {
  std::memcpy(static_cast<char*>(data) + static_cast<std::size_t>(at) * sizeof(T), &v, sizeof(T));
}

void put_integer(Tensor& t, std::int64_t at, PyObject* object) {
  const Integer v = integer_of(object);
  if (is_integer(t.dtype()) && !wraps_integers && !fits(v, t.dtype())) {
    raise_overflow_error("array(): " + to_text(Object::taken(PyObject_Str(object)).get()) + " is beyond " +
                         std::string(name(t.dtype())) + ": name a wider dtype, or let the number wrap around by astype()");
  }
  void* const data = t.mutable_data();
  switch (t.dtype()) {
    case Dtype::boolean: return store(data, at, v.bits != 0);
    case Dtype::int8:
    case Dtype::uint8: return store(data, at, static_cast<std::uint8_t>(v.bits));
    case Dtype::int16:
    case Dtype::uint16: return store(data, at, static_cast<std::uint16_t>(v.bits));
    case Dtype::int32:
    case Dtype::uint32: return store(data, at, static_cast<std::uint32_t>(v.bits));
    case Dtype::int64:
    case Dtype::uint64: return store(data, at, v.bits);
    default:
      return set_element(t, at,
                         v.beyond_signed ? static_cast<double>(v.bits) : static_cast<double>(static_cast<std::int64_t>(v.bits)));
  }
}

// One Python number into element `at`.
void put(Tensor& t, std::int64_t at, PyObject* object) {
  if (t.dtype() == Dtype::complex64) return store(t.mutable_data(), at, std::complex<float>(complex_of(object)));
  if (t.dtype() == Dtype::complex128) return store(t.mutable_data(), at, complex_of(object));
  if (PyComplex_Check(object)) raise_type_error("a complex number in an array of " + std::string(name(t.dtype())));
  if (PyFloat_Check(object)) {
    const double v = PyFloat_AsDouble(object);
    if (t.dtype() == Dtype::boolean) return store(t.mutable_data(), at, v != 0);
    return set_element(t, at, v);
  }
  return put_integer(t, at, object);
}

Dtype natural_type(Scalar kind, bool wide, bool beyond_signed) {
  switch (kind) {
    case Scalar::boolean: return Dtype::boolean;
    case Scalar::integer: return beyond_signed ? Dtype::uint64 : wide ? Dtype::int64 : Dtype::int32;
    case Scalar::real: return Dtype::float32;
    default: return Dtype::complex64;
  }
}

mx::array number_array(PyObject* object, std::optional<Dtype> dtype) {
  const Scalar kind = scalar_of(object);
  if (!dtype) {
    const Integer v = kind == Scalar::integer ? integer_of(object) : Integer{};
    dtype = natural_type(kind, v.wide, v.beyond_signed);
  }
  Tensor t(*dtype, {});
  put(t, 0, object);
  return mx::array(std::move(t));
}

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }
Py_ssize_t length(PyObject* s) { return PyList_Check(s) ? PyList_Size(s) : PyTuple_Size(s); }
PyObject* borrowed_element(PyObject* s, Py_ssize_t i) {
  PyObject* const found = PyList_Check(s) ? PyList_GetItem(s, i) : PyTuple_GetItem(s, i);
  if (found == nullptr) throw Raised();
  return found;
}
// Holds the list, because converting an element may run code that changes it.
Object element(PyObject* s, Py_ssize_t i) { return Object::of(borrowed_element(s, i)); }
bool is_arraylike(PyObject* object) {
  return is_array(object) || (!is_number(object) && (PyObject_HasAttrString(object, "__mlx_array__") != 0 ||
                                                     PyObject_HasAttrString(object, "__array_interface__") != 0));
}

constexpr std::size_t kDeepest = 64;  // lists in lists: one that holds itself has no end

void check_depth(std::size_t depth) {
  if (depth >= kDeepest) raise_value_error("array(): lists are nested too deep");
}

// Nested lists of Python's numbers.
struct Lists {
  Shape shape;
  Scalar kind = Scalar::boolean;
  bool wide = false;
  bool negative = false;
  bool beyond_signed = false;
  std::vector<Object> numbers;

  void measure(PyObject* list) {
    for (Object at = Object::of(list); is_sequence(at.get()); at = element(at.get(), 0)) {
      check_depth(shape.size());
      shape.push_back(length(at.get()));
      if (shape.back() == 0) break;
    }
  }

  void walk(PyObject* list, std::size_t depth) {
    const Py_ssize_t count = length(list);
    if (depth >= shape.size()) raise_value_error("Initialization encountered extra dimension.");
    if (count != shape[depth]) raise_value_error("Initialization encountered non-uniform length.");
    if (count == 0) kind = std::max(kind, Scalar::real);
    for (Py_ssize_t i = 0; i < count; ++i) {
      Object one = element(list, i);
      if (is_sequence(one.get())) {
        walk(one.get(), depth + 1);
      } else {
        const Scalar k = scalar_of(one.get());
        if (depth + 1 != shape.size()) raise_value_error("Initialization encountered non-uniform length.");
        kind = std::max(kind, k);
        if (k == Scalar::integer) {
          const Integer v = integer_of(one.get());
          wide = wide || v.wide;
          negative = negative || v.negative;
          beyond_signed = beyond_signed || v.beyond_signed;
        }
        numbers.push_back(std::move(one));
      }
    }
  }
};

bool holds_arrays(PyObject* list, std::size_t depth) {
  check_depth(depth);
  for (Py_ssize_t i = 0; i < length(list); ++i) {
    PyObject* const one = borrowed_element(list, i);
    if (is_number(one)) continue;
    const Object held = Object::of(one);
    if (is_sequence(one) ? holds_arrays(one, depth + 1) : is_arraylike(one)) return true;
  }
  return false;
}

mx::array array_at(PyObject* object, std::optional<Dtype> dtype, bool keep_wide, std::size_t depth);

mx::array list_array(PyObject* list, std::optional<Dtype> dtype, bool keep_wide, std::size_t depth) {
  if (holds_arrays(list, depth)) {
    std::vector<mx::array> parts;
    for (Py_ssize_t i = 0; i < length(list); ++i) {
      parts.push_back(array_at(element(list, i).get(), dtype, keep_wide, depth + 1));
    }
    if (parts.empty()) raise_value_error("Initialization encountered non-uniform length.");  // emptied meanwhile
    for (const mx::array& part : parts) {
      if (part.shape() != parts[0].shape()) raise_value_error("Initialization encountered non-uniform length.");
    }
    return mx::stack(parts, 0);
  }
  Lists lists;
  lists.measure(list);
  lists.walk(list, 0);
  if (!dtype && lists.kind == Scalar::integer && lists.negative && lists.beyond_signed) {
    raise_value_error("array(): no integer type holds both numbers below 0 and numbers of 2^63 and more: name a dtype");
  }
  if (!dtype) dtype = natural_type(lists.kind, lists.wide, lists.beyond_signed);
  Tensor t(*dtype, lists.shape);
  std::int64_t at = 0;
  for (const Object& number : lists.numbers) put(t, at++, number.get());
  return mx::array(std::move(t));
}

Object from_accessor(PyObject* object) {
  Object made = Object::of(object).attribute("__mlx_array__").call();
  if (!is_array(made.get())) raise_type_error("__mlx_array__ of " + class_name(object) + " gave no array");
  return made;
}

// The result of __array__() must be an array of NumPy itself, or the search for numbers might never end.
Object from_array_protocol(PyObject* object) {
  Object made = Object::of(object).attribute("__array__").call();
  if (PyObject_HasAttrString(made.get(), "__array_interface__") == 0 || Py_TYPE(made.get()) == Py_TYPE(object)) {
    raise_type_error("__array__ of " + class_name(object) + " gave no NumPy array but " + class_name(made.get()));
  }
  return made;
}

mx::array array_at(PyObject* object, std::optional<Dtype> dtype, bool keep_wide, std::size_t depth) {
  check_depth(depth);
  if (is_array(object)) {
    const mx::array& a = array_of(object);
    return dtype && *dtype != a.dtype() ? mx::astype(a, *dtype) : a;
  }
  const bool from_numpy = !PyLong_CheckExact(object) && PyObject_HasAttrString(object, "__array_interface__") != 0;
  if (is_number(object) && !from_numpy) return number_array(object, dtype);
  if (is_sequence(object)) return list_array(object, dtype, keep_wide, depth);
  if (PyObject_HasAttrString(object, "__mlx_array__") != 0) {
    return array_at(from_accessor(object).get(), dtype, keep_wide, depth + 1);
  }
  if (const auto a = from_buffer(object, true, keep_wide || dtype)) {
    return dtype && *dtype != a->dtype() ? mx::astype(*a, *dtype) : *a;
  }
  if (PyObject_HasAttrString(object, "__dlpack__") != 0) {
    const Object import = Object::taken(PyImport_ImportModule("sardonyx.array")).attribute("from_dlpack");
    return array_at(import.call(Object::of(object)).get(), dtype, keep_wide, depth + 1);
  }
  if (PyObject_HasAttrString(object, "__array__") != 0) {
    return array_at(from_array_protocol(object).get(), dtype, false, depth + 1);
  }
  raise_value_error("Invalid type " + class_name(object) + " received in array initialization.");
}

}  // namespace

bool is_number(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object);  // bool is an int
}

bool is_operand(PyObject* object) {
  return is_array(object) || is_number(object) || PyObject_HasAttrString(object, "__mlx_array__") != 0 ||
         PyObject_HasAttrString(object, "__array_interface__") != 0;
}

void set_wrapping(bool wrap) { wraps_integers = wrap; }

mx::array to_array(PyObject* object, std::optional<Dtype> dtype, bool keep_wide) { return array_at(object, dtype, keep_wide, 0); }

mx::array to_weak(PyObject* object, Dtype beside) {
  if (!is_number(object)) return to_array(object);
  switch (scalar_of(object)) {
    case Scalar::boolean: return number_array(object, beside);
    case Scalar::integer: {
      if (beside == Dtype::boolean) return number_array(object, std::nullopt);
      if (is_integer(beside)) {
        const bool wraps = wraps_integers && beside == Dtype::uint64;
        if (!wraps && !fits(integer_of(object), beside)) {
          raise_value_error("Converting " + to_text(Object::taken(PyObject_Str(object)).get()) + " to " +
                            std::string(name(beside)) + " would result in overflow.");
        }
      }
      return number_array(object, beside);
    }
    case Scalar::real: {
      const bool takes = is_floating(beside) || beside == Dtype::complex128;
      return number_array(object, !takes ? Dtype::float32 : beside == Dtype::complex128 ? Dtype::float64 : beside);
    }
    default:
      return number_array(object, beside == Dtype::complex128 || beside == Dtype::float64 ? Dtype::complex128 : Dtype::complex64);
  }
}

void settle_weak(PyObject** slots, std::size_t first, std::size_t last, std::vector<Object>& made) {
  Dtype beside = Dtype::undefined;
  bool all = true;
  for (std::size_t i = first; i < last; ++i) {
    if (slots[i] == Py_None) continue;
    if (!is_array(slots[i])) {
      if (is_number(slots[i])) {
        all = false;
        continue;
      }
      made.push_back(wrap(to_array(slots[i])));
      slots[i] = made.back().get();
    }
    if (beside == Dtype::undefined) beside = array_of(slots[i]).dtype();
  }
  if (all) return;
  for (std::size_t i = first; i < last; ++i) {
    if (slots[i] == Py_None || is_array(slots[i])) continue;
    made.push_back(wrap(beside == Dtype::undefined ? number_array(slots[i], std::nullopt) : to_weak(slots[i], beside)));
    slots[i] = made.back().get();
  }
}

namespace {

// One element as Python's number.
Object number_at(const Tensor& t, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  switch (t.dtype()) {
    case Dtype::boolean: return truth(t.values<bool>()[at]);
    case Dtype::uint64: return number(t.values<std::uint64_t>()[at]);
    case Dtype::complex64: {
      const auto* v = static_cast<const float*>(t.data()) + 2 * at;
      return Object::taken(PyComplex_FromDoubles(static_cast<double>(v[0]), static_cast<double>(v[1])));
    }
    case Dtype::complex128: {
      const auto* v = static_cast<const double*>(t.data()) + 2 * at;
      return Object::taken(PyComplex_FromDoubles(v[0], v[1]));
    }
    default: return is_integer(t.dtype()) ? number(element_as_int(t, i)) : number(element_as_double(t, i));
  }
}

Object nested(const Tensor& t, std::size_t axis, std::int64_t& at) {
  if (axis == t.rank()) return number_at(t, at++);
  const auto count = static_cast<Py_ssize_t>(t.dim(axis));
  Object list = Object::taken(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) check(PyList_SetItem(list.get(), i, nested(t, axis + 1, at).release()));
  return list;
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): see convert.h
Object item(mx::array value) {
  if (value.size() != 1) raise_value_error("[convert] Only length-1 arrays can be converted to Python scalars.");
  return number_at(tensor_of(value), 0);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): see convert.h
Object to_list(mx::array value) {
  std::int64_t at = 0;
  return nested(tensor_of(value), 0, at);
}

}  // namespace sdx::python::arrays
