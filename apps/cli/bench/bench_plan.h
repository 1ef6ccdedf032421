#pragma once
// `sdx bench --dry-run` and `sdx sweep --dry-run`: what would be measured.

#include <string>
#include <vector>

#include "cli/bench/bench_flags.h"

namespace sdx::cli {

// Throws what measuring would throw before its first run. `files`: those that would be written.
std::string bench_plan_text(const BenchSetup& setup, const std::vector<std::string>& files);
std::string bench_plan_json(const BenchSetup& setup, const std::vector<std::string>& files);

}  // namespace sdx::cli
