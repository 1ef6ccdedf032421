#pragma once
// NumPy and ml_dtypes, imported when they are first needed. Everything here needs the GIL.

#include <sdx/dtype.hpp>
#include <string_view>

#include "object.h"

namespace sdx::python {

// numpy.ndarray. Borrowed: it stays as long as the process.
PyObject* ndarray();
bool is_array(PyObject* object);
// numpy.NAME
Object numpy(const char* name);
// numpy.asarray(object, dtype); dtype may be none.
Object as_array(PyObject* object, const Object& dtype);
// The same in one piece, rows first.
Object as_contiguous_array(PyObject* object, const Object& dtype);

// The engine's type for ml_dtypes' name of one that NumPy lacks; undefined for other names.
DataType extension_type(std::string_view name);
// ml_dtypes' type for it; none for types of NumPy's own, and where ml_dtypes is not installed.
Object extension_dtype(DataType dtype);
// NumPy's name of the unsigned (int4, int2: signed) integers that carry the bits of a type that NumPy lacks.
const char* carrier_name(DataType dtype);
// The dtype of arrays that results of this type become. Borrowed: it stays as long as the process.
PyObject* array_dtype(DataType dtype);

}  // namespace sdx::python
