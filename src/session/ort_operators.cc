#include "session/ort_operators.h"

#include <atomic>

namespace sdx::session {
namespace {

std::atomic<ReadOrtOperators> g_read{nullptr};

}  // namespace

void read_ort_operators_with(ReadOrtOperators read) noexcept { g_read = read; }

CustomOps read_ort_operators(const std::shared_ptr<void>& library, const std::string& shown) {
  const ReadOrtOperators known = g_read;
  return (known != nullptr ? known : load_module<OrtOperatorsModule>().read)(library, shown);
}

}  // namespace sdx::session
