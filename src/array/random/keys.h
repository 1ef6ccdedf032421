#pragma once
#include <sdx/array/random.hpp>

namespace sdx::array::detail {

// `key` itself, or the next one of the process's state.
array key_or_next(const random::OptionalKey& key);

}  // namespace sdx::array::detail
