#pragma once
// Which providers programs of arrays are compiled for.

#include <memory>

#include <sdx/array/array.hpp>
#include <sdx/array/backend.hpp>

#include "session/selection.h"

namespace sdx::array::detail {

// The chain for a device. Immutable; the same object as long as the backend stays.
std::shared_ptr<const session::Selection> backend_chain(Device::Type device);

// Whether the backend in use has a device other than the CPU.
bool backend_has_gpu();

// Changes with every set_backend().
std::uint64_t backend_number() noexcept;

}  // namespace sdx::array::detail
