#include "base/system/processors.h"

#include <bit>
#include <cstdint>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

constexpr int kGroup = 64;  // processors; machines with more have several groups

int active_in(WORD group) noexcept { return static_cast<int>(::GetActiveProcessorCount(group)); }

// The mask counts for the group that the process is in; a process that nobody restricted may use all groups.
bool own_mask(std::uint64_t& mask, bool& restricted) noexcept {
  DWORD_PTR own = 0, all = 0;
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) == 0 || own == 0) return false;
  mask = own;
  restricted = own != all;
  return true;
}

WORD own_group() noexcept {
  GROUP_AFFINITY now{};
  return ::GetThreadGroupAffinity(::GetCurrentThread(), &now) != 0 ? now.Group : 0;
}

}  // namespace

std::vector<int> usable_cores() {
  std::vector<int> cores;
  std::uint64_t mask = 0;
  bool restricted = false;
  if (!own_mask(mask, restricted)) return cores;
  const WORD groups = ::GetActiveProcessorGroupCount(), own = own_group();
  for (WORD group = 0; group < groups; ++group) {
    if (restricted && group != own) continue;
    for (int i = 0; i < active_in(group); ++i) {
      if (group != own || (mask >> i & 1) != 0) cores.push_back(group * kGroup + i);
    }
  }
  return cores;
}

int count_usable_cores() noexcept {
  std::uint64_t mask = 0;
  bool restricted = false;
  if (!own_mask(mask, restricted)) return 0;
  return restricted ? std::popcount(mask) : count_online_cores();
}

int count_online_cores() noexcept { return static_cast<int>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)); }

int most_cores() noexcept { return ::GetMaximumProcessorGroupCount() * kGroup; }

void stay_on(int core) noexcept {
  GROUP_AFFINITY place{};
  place.Group = static_cast<WORD>(core / kGroup);
  place.Mask = KAFFINITY{1} << (core % kGroup);
  ::SetThreadGroupAffinity(::GetCurrentThread(), &place, nullptr);
}

void at_fork(void (*)(), void (*)(), void (*)()) noexcept {}

}  // namespace sdx
