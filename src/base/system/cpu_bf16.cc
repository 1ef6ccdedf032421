#include "base/system/cpu_bf16.h"

#include <cstdlib>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sdx {
namespace {

bool arm_has_it() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16, which older headers lack
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

bool switched_off() {
  const char* text = std::getenv("SDX_CPU_BF16");
  return text != nullptr && std::string_view(text) == "0";
}

}  // namespace

bool use_bf16(Isa isa) {
  static const bool on = !switched_off(), arm = arm_has_it();
  return on && ((isa == Isa::avx512 && cpu_features().avx512_bf16) || (isa == Isa::neon && arm));
}

}  // namespace sdx
