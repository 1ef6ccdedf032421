#pragma once
// The passes that an optimised session runs on the cpu provider.

#include <vector>

#include "passes/pass.h"
#include "providers/cpu/cpu_provider.h"

namespace sdx::testing {

inline const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> all = [] {
    std::vector<Pass> list(passes().begin(), passes().end());
    const auto own = cpu::provider().passes();
    list.insert(list.end(), own.begin(), own.end());
    return list;
  }();
  return all;
}

}  // namespace sdx::testing
