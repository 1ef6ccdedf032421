#include "kernels/cpu/simd/scratch.h"

#include <memory>
#include <new>

#include "base/system/pages.h"

namespace sdx::cpu {
namespace {

struct Free {
  void operator()(float* p) const { free_aligned(p); }
};

struct Slot {
  std::unique_ptr<float, Free> data;
  std::size_t floats = 0;
};

thread_local Slot t_slots[6];  // memory and no state: what one kernel left there means nothing to the next

}  // namespace

float* thread_scratch(int slot, std::size_t floats) {
  Slot& s = t_slots[slot];
  if (s.floats < floats) {
    const std::size_t rounded = (floats + 1023) / 1024 * 1024;
    s.data.reset();  // before the new block, to keep the peak low
    s.floats = 0;
    s.data.reset(static_cast<float*>(allocate_aligned(rounded * sizeof(float), 64)));
    if (!s.data) throw std::bad_alloc();
    s.floats = rounded;
  }
  return s.data.get();
}

}  // namespace sdx::cpu
