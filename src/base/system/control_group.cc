#include "base/system/control_group.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/system/cpu/share.h"
#include "base/system/processors.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// A hierarchy of groups: version 2 has one, version 1 one for some controllers each.
struct Hierarchy {
  bool found = false;
  fs::path mounted;  // here,
  std::string top;   // which is this group
};

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::string_view first = list.substr(0, list.find(','));
    if (first == word) return true;
    list.remove_prefix(std::min(list.size(), first.size() + 1));
  }
  return false;
}

// The hierarchies of a controller in version 1 and of all in version 2.
struct Hierarchies {
  Hierarchy own, unified;
};

// "36 35 0:31 /top /mounted rw - cgroup cgroup rw,cpu,cpuacct".
Hierarchies find_hierarchies(std::string_view controller, const fs::path& root) {
  Hierarchies out;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - cgroup");  // hosts of containers have thousands of other lines
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, top, mounted, type, source, options;
    before >> skipped >> skipped >> skipped >> top >> mounted;
    after >> type >> source >> options;
    Hierarchy& h = type == "cgroup2" ? out.unified : out.own;
    const bool wanted = type == "cgroup2" || (type == "cgroup" && has_word(options, controller));
    if (wanted && !h.found && mounted.starts_with('/')) h = {true, root / mounted.substr(1), top};
  }
  return out;
}

// "4:cpu,cpuacct:/group" or, for version 2, whose controller is "" here, "0::/group".
std::string find_group(std::string_view controller, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : has_word(names, controller)) return line.substr(second + 1);
  }
  return {};
}

std::vector<fs::path> groups_of(const Hierarchy& hierarchy, const std::string& group) {
  std::vector<fs::path> out;
  // The process's group is below the mounted one; for any other path ("/../x", or a path of the host's) only the mounted one can
  // be seen.
  std::string below = group;
  if (hierarchy.top != "/") {
    const bool inside = group == hierarchy.top || group.starts_with(hierarchy.top + "/");
    below = inside ? group.substr(hierarchy.top.size()) : "";
  }
  if (below.find("/..") != std::string::npos) below.clear();
  for (; !below.empty() && below != "/"; below.resize(below.rfind('/'))) {
    std::error_code none;
    const fs::path folder = hierarchy.mounted / below.substr(1);
    if (fs::is_directory(folder, none)) out.push_back(folder);
  }
  out.push_back(hierarchy.mounted);
  return out;
}

// The whole numbers at the file's beginning; "max" and a negative one end them, as "no limit" is written.
std::vector<double> numbers_of(const fs::path& path) {
  std::vector<double> out;
  std::ifstream file(path);
  for (double number = 0; file >> number && number >= 0;) out.push_back(number);
  return out;
}

// The quota of one group; nullopt: it has none.
std::optional<double> quota_of(const fs::path& group) {
  std::vector<double> time = numbers_of(group / "cpu.max");
  if (time.empty()) {
    time = numbers_of(group / "cpu.cfs_quota_us");
    const std::vector<double> period = numbers_of(group / "cpu.cfs_period_us");
    time.insert(time.end(), period.begin(), period.end());
  }
  if (time.size() < 2 || time[0] <= 0 || time[1] <= 0) return std::nullopt;
  return time[0] / time[1];
}

std::optional<std::uint64_t> memory_left_in(const fs::path& group) {
  for (const auto& [most, used] :
       {std::pair("memory.max", "memory.current"), std::pair("memory.limit_in_bytes", "memory.usage_in_bytes")}) {
    const std::vector<double> a = numbers_of(group / most), b = numbers_of(group / used);
    if (a.empty() || b.empty()) continue;
    return a[0] > b[0] ? static_cast<std::uint64_t>(std::min(a[0] - b[0], 9e18)) : 0;
  }
  return std::nullopt;
}

template <class T, class F>
std::optional<T> least(std::string_view controller, const fs::path& root, const F& limit_of) {
  std::optional<T> out;
  for (const fs::path& group : control_groups(controller, root)) {
    const std::optional<T> limit = limit_of(group);
    if (limit) out = out ? std::min(*out, *limit) : limit;
  }
  return out;
}

}  // namespace

std::vector<fs::path> control_groups(std::string_view controller, const fs::path& root) {
  const Hierarchies all = find_hierarchies(controller, root);
  if (all.own.found) return groups_of(all.own, find_group(controller, root));
  return all.unified.found ? groups_of(all.unified, find_group("", root)) : std::vector<fs::path>{};
}

std::optional<double> cpu_quota(const fs::path& root) { return least<double>("cpu", root, quota_of); }

std::optional<double> cpu_quota() {
  static const std::optional<double> own = cpu_quota("/");
  return own;
}

std::optional<std::uint64_t> memory_left(const fs::path& root) { return least<std::uint64_t>("memory", root, memory_left_in); }

int within_quota(int cores, std::optional<double> quota) {
  if (!quota) return std::max(1, cores);
  return std::max(1, std::min(cores, static_cast<int>(std::ceil(std::min(*quota, 1e6)))));
}

CpuShare cpu_share() { return {count_online_cores(), count_usable_cores(), cpu_quota()}; }

int usable_cpus() {
  const int cores = count_usable_cores();
  return within_quota(cores > 0 ? cores : static_cast<int>(std::thread::hardware_concurrency()), cpu_quota());
}

}  // namespace sdx
