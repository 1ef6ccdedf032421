#pragma once
// The functions of sardonyx.array by area, as lines of bind.h.

#include "../bind.h"

namespace sdx::python::arrays {

std::vector<Definition> elementwise_functions();
std::vector<Definition> exponent_functions();
std::vector<Definition> choice_functions();
std::vector<Definition> reduce_functions();
std::vector<Definition> sort_functions();
std::vector<Definition> standard_functions();
std::vector<Definition> shape_functions();
std::vector<Definition> fast_functions();
std::vector<Definition> create_functions();
std::vector<Definition> matrix_functions();
std::vector<Definition> exchange_functions();
std::vector<Definition> transform_functions();
std::vector<Definition> stream_functions();
std::vector<Definition> memory_functions();
std::vector<Definition> io_functions();
std::vector<Definition> quantize_functions();
std::vector<Definition> linalg_functions();
std::vector<Definition> random_functions();
std::vector<Definition> convolve_functions();
std::vector<Definition> fft_functions();

}  // namespace sdx::python::arrays
