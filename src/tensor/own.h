#pragma once
// Whose memory values are, also that of tensors within sequences and maps.

#include <vector>

#include <sdx/tensor.hpp>

namespace sdx {

// Whether whoever holds the value keeps all of its memory alive: false where a tensor has no owner, and so is a view of memory
// that somebody else may take back.
bool owns_memory(const Value& v);

// `v` itself if owns_memory(), else with copies of the tensors that have no owner.
Value owned(const Value& v);

// Copies what others hold as well, so that nobody but the caller sees `results`. Kernels may hand on an input, a constant, or one
// tensor as two outputs, alone or within a sequence. `given`: the run's inputs.
void unshare(std::vector<Value>& results, const std::vector<Value>& given);

}  // namespace sdx
