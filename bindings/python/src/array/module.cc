#include "module.h"

#include "callback.h"
#include "dtype.h"
#include "tables/tables.h"

namespace sdx::python {

Object make_arrays(PyObject*, PyObject*) {
  using namespace arrays;
  Object module = Object::taken(PyModule_New("sardonyx.array"));
  add_dtypes(module);
  add_array_type(module);
  add_compiled(module);
  for (const auto& functions : {elementwise_functions, exponent_functions, choice_functions, reduce_functions, shape_functions,
                                create_functions, matrix_functions, exchange_functions, transform_functions, stream_functions,
                                convolve_functions, memory_functions, sort_functions, io_functions, quantize_functions}) {
    add_functions(module, functions());
  }
  add_submodule(module, "_standard", "sardonyx.array", standard_functions());
  add_submodule(module, "_fast", "sardonyx.array.fast", fast_functions());
  add_submodule(module, "_linalg", "sardonyx.array.linalg", linalg_functions());
  add_submodule(module, "_random", "sardonyx.array.random", random_functions());
  add_submodule(module, "_fft", "sardonyx.array.fft", fft_functions());
  return module;
}

}  // namespace sdx::python
