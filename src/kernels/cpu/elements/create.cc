#include "kernels/cpu/elements/create.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/type_list.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 32768;

template <class T>
void range(const T* start, const T* step, T* y, std::int64_t begin, std::int64_t end) {
  if constexpr (std::is_integral_v<T>) {
    const auto first = static_cast<std::uint64_t>(*start), by = static_cast<std::uint64_t>(*step);
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(first + static_cast<std::uint64_t>(i) * by);
  } else if constexpr (is_complex_v<T>) {
    using P = typename T::value_type;
    for (std::int64_t i = begin; i < end; ++i) y[i] = T(start->real() + static_cast<P>(i) * step->real(), 0);
  } else {
    const Computed<T> first = load(*start), by = load(*step);
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(first + static_cast<Computed<T>>(i) * by);
  }
}

}  // namespace

void fill_range(const Tensor& start, const Tensor& step, Tensor& y) {
  with_type(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto *first = static_cast<const T*>(start.data()), *by = static_cast<const T*>(step.data());
    auto* to = static_cast<T*>(y.mutable_data());
    parallel_for(y.size(), kGrain, [&](std::int64_t begin, std::int64_t end) { range(first, by, to, begin, end); });
  });
}

void fill_triangle(const Tensor& diagonal, Tensor& y) {
  const std::int64_t rows = y.dim(0), columns = y.dim(1), k = *static_cast<const std::int32_t*>(diagonal.data());
  auto* to = static_cast<std::uint8_t*>(y.mutable_data());
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t ones = std::clamp<std::int64_t>(i + k + 1, 0, columns);
                   std::memset(to + i * columns, 1, static_cast<std::size_t>(ones));
                   std::memset(to + i * columns + ones, 0, static_cast<std::size_t>(columns - ones));
                 }
               });
}

}  // namespace sdx::cpu
