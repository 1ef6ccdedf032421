#pragma once
// Conversions between Python objects and the engine's values. Everything here needs the GIL.

#include <deque>

#include <sdx/session.hpp>

#include "buffer.h"
#include "object.h"

namespace sdx::python {

// Keeps Python's buffers alive, and their arrays from being resized, while the engine reads them.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }
  // A contiguous view of `object`'s memory, or null (with no Python error set) where it has none to offer.
  const Py_buffer* get(PyObject* object);

 private:
  std::deque<Py_buffer> views_;  // addresses must not change: they go to the exporter
};

// The type and shape that a model expects of an input, for converting objects that are not arrays.
struct Expected {
  const char* name;  // of the input, for messages
  DataType dtype = DataType::undefined;
  bool is_tensor = true;
};

// Arrays become views that are valid as long as `buffers`, copies only where memory is not contiguous, in foreign byte order,
// text, or one element per byte where the engine packs 4 and 2 bits. Numbers and nested lists become arrays of the expected type.
// None: nothing; dict: a map; list or tuple where no tensor is expected: a sequence. Throws Error(invalid_argument), or Raised.
Value to_value(PyObject* object, const Expected& expected, Buffers& buffers);

// An array's own memory, to be written to. It must be contiguous and writable, of numbers. Valid as long as `buffers`. Throws
// Error.
Tensor to_memory(PyObject* array, const char* name, Buffers& buffers);

// Arrays own the engine's memory: nothing is copied, except text and types of less than a byte. Types that NumPy lacks come as
// those of ml_dtypes; where that package is missing as their bits (uint16, uint8), 4- and 2-bit integers as int8 and uint8.
// Tensors that somebody else can still see are copied first.
Object to_python(const Value& value);

// Makes the type of the objects that hold arrays' memory. Throws Raised.
void prepare_memory_type();

}  // namespace sdx::python
