#pragma once
// Whose memory a value lies in.

#include <sdx/tensor.hpp>

namespace sdx {

// Whether whoever holds the value keeps all of its memory alive: false for views of memory that somebody else promises to keep,
// also as elements of sequences and maps.
bool owns_memory(const Value& value);

// The value itself if owns_memory(), else a copy that does. Elements of sequences that own theirs are shared, not copied.
Value owned(Value value);

// Fills the tensor as base/poison.h says, with a signalling NaN of its element type where that has one. Not for strings.
void poison(Tensor& tensor);

}  // namespace sdx
