// Operators: +, ==, int() and their like.

#include "bind.h"

namespace sdx::python::arrays {
namespace {

using Two = mx::array (*)(const mx::array&, const mx::array&, StreamOrDevice);

// Other classes may know how to combine themselves with an array; Python's own classes do not.
bool both_operands(PyObject* a, PyObject* b) {
  if (is_operand(a) && is_operand(b)) return true;
  for (PyObject* const one : {a, b}) {
    if (PyList_Check(one) || PyTuple_Check(one) || PyUnicode_Check(one) || PyBytes_Check(one)) {
      raise_value_error("Cannot perform this operation on an array and " + class_name(one));
    }
  }
  return false;
}

mx::array apply(Two f, PyObject* a, PyObject* b) {
  if (is_array(a) && is_array(b)) return f(array_of(a), array_of(b), {});
  PyObject* slots[2] = {a, b};
  std::vector<Object> made;
  settle_weak(slots, 0, 2, made);
  return f(array_of(slots[0]), array_of(slots[1]), {});
}

template <Two F>
PyObject* two(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!both_operands(a, b)) return Object::of(Py_NotImplemented).release();
    return wrap(apply(F, a, b)).release();
  });
}

// a += b: the handle holds another array.
template <Two F>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!both_operands(a, b)) return Object::of(Py_NotImplemented).release();
    array_of(a) = apply(F, a, b);
    return Object::of(a).release();
  });
}

PyObject* divide_in_place(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const Dtype dtype = array_of(a).dtype();
    if (is_integer(dtype) || dtype == Dtype::boolean) {
      raise_value_error("In-place division cannot be performed on an array of " + std::string(name(dtype)));
    }
    return in_place<&mx::divide>(a, b);
  });
}

// pow(a, b, m) is for Python's integers.
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus != Py_None ? Object::of(Py_NotImplemented).release() : two<&mx::power>(a, b);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) noexcept { return in_place<&mx::power>(a, b); }

template <mx::array (*F)(const mx::array&, StreamOrDevice)>
PyObject* one(PyObject* a) noexcept {
  return guarded<PyObject*>(nullptr, [&] { return wrap(F(array_of(a), {})).release(); });
}

PyObject* plus(PyObject* a) {
  return guarded<PyObject*>(nullptr, [&] { return wrap(array_of(a)).release(); });
}

PyObject* invert(PyObject* a) {
  return guarded<PyObject*>(nullptr, [&] {
    const mx::array& v = array_of(a);
    if (!is_integer(v.dtype()) && v.dtype() != Dtype::boolean) {
      raise_value_error("Floating point types not allowed with or bitwise inversion.");
    }
    return wrap(v.dtype() == Dtype::boolean ? mx::logical_not(v) : mx::bitwise_invert(v)).release();
  });
}

// Bitwise operators are not defined for floats.
template <Two F>
mx::array of_bits(const mx::array& a, const mx::array& b, StreamOrDevice s) {
  const auto whole = [](const mx::array& v) { return is_integer(v.dtype()) || v.dtype() == Dtype::boolean; };
  if (!whole(a) || !whole(b)) raise_value_error("Floating point types not allowed with bitwise operators.");
  return F(a, b, s);
}

PyObject* compare(PyObject* a, PyObject* b, int how) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if ((how == Py_EQ || how == Py_NE) ? !is_operand(a) || !is_operand(b) : !both_operands(a, b)) {
      return Object::of(Py_NotImplemented).release();
    }
    constexpr Two kComparisons[] = {&mx::less, &mx::less_equal, &mx::equal, &mx::not_equal, &mx::greater, &mx::greater_equal};
    return wrap(apply(kComparisons[how], a, b)).release();
  });
}

int is_true(PyObject* a) {
  return guarded<int>(-1, [&] { return to_truth(item(array_of(a)).get()) ? 1 : 0; });
}

PyObject* as_int(PyObject* a) {
  return guarded<PyObject*>(nullptr, [&] { return Object::taken(PyNumber_Long(item(array_of(a)).get())).release(); });
}
PyObject* as_float(PyObject* a) {
  return guarded<PyObject*>(nullptr, [&] { return Object::taken(PyNumber_Float(item(array_of(a)).get())).release(); });
}
PyObject* as_index(PyObject* a) {
  return guarded<PyObject*>(nullptr, [&] {
    const mx::array v = array_of(a);
    if (!is_integer(v.dtype()) || v.ndim() != 0) raise_type_error("only scalar arrays of integers can be an index");
    return item(v).release();
  });
}

PyType_Slot slot(int which, auto* function) { return {which, reinterpret_cast<void*>(function)}; }

}  // namespace

std::vector<PyType_Slot> number_slots() {
  return {slot(Py_nb_add, &two<&mx::add>),
          slot(Py_nb_subtract, &two<&mx::subtract>),
          slot(Py_nb_multiply, &two<&mx::multiply>),
          slot(Py_nb_true_divide, &two<&mx::divide>),
          slot(Py_nb_floor_divide, &two<&mx::floor_divide>),
          slot(Py_nb_remainder, &two<&mx::remainder>),
          slot(Py_nb_power, &power),
          slot(Py_nb_matrix_multiply, &two<&mx::matmul>),
          slot(Py_nb_and, &two<&of_bits<&mx::bitwise_and>>),
          slot(Py_nb_or, &two<&of_bits<&mx::bitwise_or>>),
          slot(Py_nb_xor, &two<&of_bits<&mx::bitwise_xor>>),
          slot(Py_nb_lshift, &two<&of_bits<&mx::left_shift>>),
          slot(Py_nb_rshift, &two<&of_bits<&mx::right_shift>>),
          slot(Py_nb_inplace_add, &in_place<&mx::add>),
          slot(Py_nb_inplace_subtract, &in_place<&mx::subtract>),
          slot(Py_nb_inplace_multiply, &in_place<&mx::multiply>),
          slot(Py_nb_inplace_true_divide, &divide_in_place),
          slot(Py_nb_inplace_floor_divide, &in_place<&mx::floor_divide>),
          slot(Py_nb_inplace_remainder, &in_place<&mx::remainder>),
          slot(Py_nb_inplace_power, &power_in_place),
          slot(Py_nb_inplace_matrix_multiply, &in_place<&mx::matmul>),
          slot(Py_nb_inplace_and, &in_place<&of_bits<&mx::bitwise_and>>),
          slot(Py_nb_inplace_or, &in_place<&of_bits<&mx::bitwise_or>>),
          slot(Py_nb_inplace_xor, &in_place<&of_bits<&mx::bitwise_xor>>),
          slot(Py_nb_inplace_lshift, &in_place<&of_bits<&mx::left_shift>>),
          slot(Py_nb_inplace_rshift, &in_place<&of_bits<&mx::right_shift>>),
          slot(Py_nb_negative, &one<&mx::negative>),
          slot(Py_nb_positive, &plus),
          slot(Py_nb_absolute, &one<&mx::abs>),
          slot(Py_nb_invert, &invert),
          slot(Py_nb_bool, &is_true),
          slot(Py_nb_int, &as_int),
          slot(Py_nb_float, &as_float),
          slot(Py_nb_index, &as_index),
          slot(Py_tp_richcompare, &compare)};
}

}  // namespace sdx::python::arrays
