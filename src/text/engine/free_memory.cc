#include "text/engine/free_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace sdx::text {
namespace {

// "0::/user.slice/x": the folder below /sys/fs/cgroup.
std::string group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return {};
}

// False where the file is not there, or says "max".
bool read_number(const std::string& path, std::uint64_t& value) {
  std::ifstream file(path);
  return static_cast<bool>(file >> value);
}

}  // namespace

std::uint64_t free_memory() {
  std::uint64_t bytes = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) bytes = kib << 10;
    std::getline(file, key);
  }
  for (std::string folder = group(); folder.size() > std::string("/sys/fs/cgroup").size() - 1; folder.resize(folder.rfind('/'))) {
    std::uint64_t most = 0, used = 0;
    if (read_number(folder + "/memory.max", most) && read_number(folder + "/memory.current", used)) {
      const std::uint64_t left = most > used ? most - used : 0;
      bytes = bytes == 0 ? left : std::min(bytes, left);
    }
  }
  return bytes;
}

}  // namespace sdx::text
