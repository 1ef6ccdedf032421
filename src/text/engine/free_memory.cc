#include "text/engine/free_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "base/system/control_group.h"

namespace sdx::text {

std::uint64_t free_memory() {
  std::uint64_t bytes = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) bytes = kib << 10;
    std::getline(file, key);
  }
  const std::optional<std::uint64_t> left = memory_left();
  if (left) bytes = bytes == 0 ? *left : std::min(bytes, *left);
  return bytes;
}

}  // namespace sdx::text
