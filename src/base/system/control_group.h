#pragma once
// The share of the machine that containers and service managers grant this process (Linux's control groups, versions 1 and 2).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// The folders of the groups that this process is in, for a controller such as "cpu": its own first, then those around it, whose
// limits hold as well. Where version 1 has no such controller, those of version 2. Empty: none. `root`: of the file system.
std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

// The number of processors whose time the groups allow; nullopt: no limit.
std::optional<double> cpu_quota(const std::filesystem::path& root);
// The quota of this process, read once, because reading it takes a dozen files.
std::optional<double> cpu_quota();

// Bytes that the groups still allow; nullopt: as many as there are.
SDX_TOOLS_API std::optional<std::uint64_t> memory_left(const std::filesystem::path& root = "/");

// The number of threads that can compute at once: the cores that this process may run on, or its quota of their time, rounded up.
// At least 1.
SDX_TOOLS_API int usable_cpus();

// The same for this number of cores.
int within_quota(int cores, std::optional<double> quota);

}  // namespace sdx
