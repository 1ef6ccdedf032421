#include "text/engine/free_memory.h"

#include <algorithm>
#include <optional>

#include "base/system/control_group.h"
#include "base/system/processes/unused_memory.h"

namespace sdx::text {

std::uint64_t free_memory() {
  const std::uint64_t bytes = unused_memory();
  const std::optional<std::uint64_t> left = memory_left();
  if (!left) return bytes;
  return bytes == 0 ? *left : std::min(bytes, *left);
}

}  // namespace sdx::text
