#pragma once
// Shared by all kinds of values.

#include "dropin/objects.h"

namespace sdx::dropin {

// Throws OrtError(ORT_INVALID_ARGUMENT) for negative extents.
Shape shape_of(const std::int64_t* extents, std::size_t rank);
// Throws OrtError(ORT_NOT_IMPLEMENTED) for numbers that are no element type.
DataType checked_type(ElementType element);
// A copy for a value to keep, without an allocation for the usual ones; null for cpu_memory().
std::shared_ptr<const OrtMemoryInfo> keep_info(const OrtMemoryInfo* info);
// A tensor in the allocator's memory, which is freed with its last holder. Strings are in our memory.
Tensor allocated_tensor(OrtAllocator* allocator, DataType type, Shape shape);

}  // namespace sdx::dropin
