#include "ops/math/float_view.h"

#include <type_traits>

#include "kernels/cpu/elements/halves.h"

namespace sdx::ops {

template <class C>
void load_floats(const Tensor& tensor, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(tensor.dtype())) return cpu::widen(tensor.dtype(), tensor.data(), out, tensor.size());
  }
  dispatch(tensor.dtype(), FloatTypes{}, "reading floats", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* p = static_cast<const T*>(tensor.data());
    const std::int64_t n = tensor.size();
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(static_cast<ComputeType<T>>(p[i]));
  });
}

template <class C>
void store_floats(const C* values, Tensor& tensor) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(tensor.dtype())) return cpu::narrow(tensor.dtype(), values, tensor.mutable_data(), tensor.size());
  }
  dispatch(tensor.dtype(), FloatTypes{}, "writing floats", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* p = static_cast<T*>(tensor.mutable_data());
    const std::int64_t n = tensor.size();
    for (std::int64_t i = 0; i < n; ++i) p[i] = T(static_cast<ComputeType<T>>(values[i]));
  });
}

template void load_floats<float>(const Tensor&, float*);
template void load_floats<double>(const Tensor&, double*);
template void store_floats<float>(const float*, Tensor&);
template void store_floats<double>(const double*, Tensor&);

}  // namespace sdx::ops
