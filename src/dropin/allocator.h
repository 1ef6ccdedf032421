#pragma once
// Allocators of ours, and those that programs share between sessions by the environment.

#include "dropin/objects.h"

namespace sdx::dropin {

// Memory of the process's heap, which says of itself what `info` says. The caller frees it with release_allocator.
OrtAllocator* new_allocator(const OrtMemoryInfo& info);
void release_allocator(OrtAllocator* allocator);

// Releases an allocator that an environment holds: ours are freed, programs' own are left alone.
void release_shared(const OrtMemoryInfo& info, OrtAllocator* allocator);

}  // namespace sdx::dropin
