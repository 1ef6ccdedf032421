#pragma once
// Whose memory values are, also that of tensors within sequences and maps.

#include <vector>

#include <sdx/tensor.hpp>

namespace sdx {

// `v`, with copies of the tensors that have no owner: those are views of memory that somebody else may take back.
Value with_owned_tensors(const Value& v);

// Copies what others hold as well, so that nobody but the caller sees `results`. Kernels may hand on an input, a constant, or one
// tensor as two outputs, alone or within a sequence. `given`: the run's inputs.
void unshare(std::vector<Value>& results, const std::vector<Value>& given);

}  // namespace sdx
