#include "providers/table.h"

#include <array>

#include "providers/cpu/cpu_provider.h"
#include "providers/fault/fault_provider.h"
#include "providers/openvino/openvino_provider.h"
#include "providers/ort/ort_provider.h"

namespace sdx {

std::span<const Provider* const> provider_table() {
  static const std::array<const Provider*, 2> table{&cpu::provider(), &openvino::provider()};
  return table;
}

const Provider* find_provider(std::string_view short_name) {
  for (const Provider* p : provider_table()) {
    if (p->name() == short_name) return p;
  }
  if (short_name == "fault") return test_provider_enabled() ? fault::provider() : nullptr;
  return ort::find(short_name);
}

}  // namespace sdx
