#include "inputs/random_input.h"

#include <string>

#include "inputs/random.h"
#include "tensor/element.h"

namespace sdx::inputs {

Tensor random_tensor(DataType dtype, const Shape& shape, std::uint64_t seed) {
  Tensor t(dtype, shape);
  Random random(seed);
  if (dtype == DataType::string) {
    for (std::string& s : t.mutable_values<std::string>()) s = std::string(1, static_cast<char>('a' + random.bits() % 10));
    return t;
  }
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::uint64_t bits = random.bits();
    if (dtype == DataType::boolean) {
      set_element(t, i, static_cast<double>(bits >> 63));
    } else if (is_integer(dtype)) {
      set_element_int(t, i, static_cast<std::int64_t>(bits % 10));
    } else {
      set_element(t, i, static_cast<double>(bits >> 11) * 0x1p-53);
    }
  }
  return t;
}

}  // namespace sdx::inputs
