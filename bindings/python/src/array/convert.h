#pragma once
// Conversions between arrays and Python's numbers, lists and buffers.

#include <optional>

#include "handle.h"

namespace sdx::python::arrays {

// An array of anything: a number, nested lists and tuples of numbers or arrays, an array, a buffer, an object with __dlpack__ or
// __mlx_array__. Copies, as mlx.core.array() does. float64 of NumPy becomes float32 unless `keep_wide`.
mx::array to_array(PyObject* object, std::optional<Dtype> dtype = std::nullopt, bool keep_wide = false);
// Whether to_array() lets Python's integers wrap around if `dtype` cannot hold them, as MLX does. Otherwise they raise
// OverflowError.
void set_wrapping(bool wrap);
bool is_number(PyObject* object);
// Whether to_array() accepts the object (lists do not count). Operators return NotImplemented for others.
bool is_operand(PyObject* object);
// A number that takes the type of the array beside it, as far as it can: 2.5 beside int32 becomes float32.
mx::array to_weak(PyObject* number, Dtype beside);
// Converts the numbers in slots[first..last) to arrays, with types that suit the arrays among them. `made` keeps the new arrays
// alive.
void settle_weak(PyObject** slots, std::size_t first, std::size_t last, std::vector<Object>& made);

// A view of a buffer's memory where `copy` is false, else a copy. Undefined, with no error set, where the object has no buffer.
std::optional<mx::array> from_buffer(PyObject* object, bool copy, bool keep_wide);

// Returned by value: while the elements are computed, another thread may put another array into the handle that this one came
// from.
Object item(mx::array value);
Object to_list(mx::array value);

}  // namespace sdx::python::arrays
