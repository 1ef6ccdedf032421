#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/order/reduce.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

template <class A>
A log_add_exp(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (a == b) return a + std::numbers::ln2_v<A>;
    const A high = std::max(a, b), apart = -std::fabs(a - b);
    return apart != apart ? apart : high + std::log1p(std::exp(apart));
  } else if constexpr (is_complex_v<A>) {
    A result;
    complex_row(BinaryFn::logaddexp, DataTypeOf<A>::value)(&a, 1, &b, 1, &result, 1);
    return result;
  } else {
    return a;
  }
}

template <ScanFn kFn, class A>
A combine(A a, A b) {
  if constexpr (kFn == ScanFn::max) return nan_of(a) || before(b, a) ? a : b;
  if constexpr (kFn == ScanFn::min) return nan_of(a) || before(a, b) ? a : b;
  if constexpr (kFn == ScanFn::logaddexp) return log_add_exp(a, b);
  if constexpr (std::is_same_v<A, bool>) {
    return kFn == ScanFn::sum ? a || b : a && b;
  } else if constexpr (std::is_integral_v<A>) {
    using U = std::conditional_t<(sizeof(A) < 4), std::uint32_t, std::make_unsigned_t<A>>;
    return static_cast<A>(kFn == ScanFn::sum ? static_cast<U>(a) + static_cast<U>(b) : static_cast<U>(a) * static_cast<U>(b));
  } else if constexpr (is_complex_v<A>) {
    if (kFn == ScanFn::sum) return a + b;
    return A(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return kFn == ScanFn::sum ? a + b : a * b;
  }
}

// Returns the neutral element: combined with any number, it gives that number.
template <ScanFn kFn, class A>
A neutral() {
  if constexpr (kFn == ScanFn::sum) return A(0);
  if constexpr (kFn == ScanFn::prod) return A(1);
  constexpr bool kLowest = kFn != ScanFn::min;
  if constexpr (is_complex_v<A>) {
    using P = typename A::value_type;
    const P bound = kLowest ? -std::numeric_limits<P>::infinity() : std::numeric_limits<P>::infinity();
    return kFn == ScanFn::logaddexp ? A(bound, 0) : A(bound, bound);
  } else if constexpr (std::is_floating_point_v<A>) {
    return kLowest ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  } else {
    return kLowest ? std::numeric_limits<A>::lowest() : std::numeric_limits<A>::max();
  }
}

template <ScanFn kFn, class A, class T>
void scan_columns(const T* x, T* y, std::int64_t count, std::int64_t inner, std::int64_t width, bool reverse, bool inclusive) {
  constexpr std::int64_t kWidest = 256;
  A running[kWidest];
  std::fill_n(running, width, neutral<kFn, A>());
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t at = (reverse ? count - 1 - r : r) * inner;
    for (std::int64_t i = 0; i < width; ++i) {
      const A next = combine<kFn>(running[i], static_cast<A>(load(x[at + i])));
      y[at + i] = static_cast<T>(inclusive ? next : running[i]);
      running[i] = next;
    }
  }
}

// Scans kRows neighbouring rows at once, of which no number waits for another row's. Results so far stay in registers.
template <ScanFn kFn, class A, int kRows, class T>
void scan_rows(const T* x, T* y, std::int64_t count, bool reverse, bool inclusive) {
  const std::int64_t step = reverse ? -1 : 1;
  if (reverse) x += count - 1, y += count - 1;
  A running[kRows];
  std::fill_n(running, kRows, neutral<kFn, A>());
  for (std::int64_t i = 0; i < count; ++i, x += step, y += step) {
    for (int r = 0; r < kRows; ++r) {
      const A next = combine<kFn>(running[r], static_cast<A>(load(x[r * count])));
      y[r * count] = static_cast<T>(inclusive ? next : running[r]);
      running[r] = next;
    }
  }
}

template <ScanFn kFn, class A, class T>
void scan_all(const T* x, T* y, const Lanes& e, bool reverse, bool inclusive) {
  if (e.inner == 1 && kFn != ScanFn::logaddexp) {
    // A sum of integers takes one cycle and waits for none; conversions of halves take longer than their sums.
    constexpr int kRows = std::is_floating_point_v<T> ? 4 : 1;
    return parallel_for(e.outer, std::max<std::int64_t>(1, kGrain / e.count), [&](std::int64_t begin, std::int64_t end) {
      std::int64_t r = begin;
      for (; r + kRows <= end; r += kRows) {
        scan_rows<kFn, A, kRows>(x + r * e.count, y + r * e.count, e.count, reverse, inclusive);
      }
      for (; r < end; ++r) scan_rows<kFn, A, 1>(x + r * e.count, y + r * e.count, e.count, reverse, inclusive);
    });
  }
  constexpr std::int64_t kStrip = 256;
  const std::int64_t strips = (e.inner + kStrip - 1) / kStrip;
  const std::int64_t elements = std::max<std::int64_t>(1, e.count * std::min(kStrip, e.inner));
  parallel_for(e.outer * strips, std::max<std::int64_t>(1, kGrain / elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first = t % strips * kStrip, at = t / strips * e.count * e.inner + first;
      scan_columns<kFn, A>(x + at, y + at, e.count, e.inner, std::min(kStrip, e.inner - first), reverse, inclusive);
    }
  });
}

}  // namespace

void product_in_double(const float* x, float* y, const Lanes& e, bool reverse, bool inclusive) {
  if (e.outer * e.count * e.inner > 0) scan_all<ScanFn::prod, double>(x, y, e, reverse, inclusive);
}

void scan(ScanFn fn, DataType type, const void* x, void* y, const Lanes& e, bool reverse, bool inclusive) {
  if (e.outer * e.count * e.inner == 0) return;
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Computed<T>;
    const auto* px = static_cast<const T*>(x);
    auto* py = static_cast<T*>(y);
    switch (fn) {
      case ScanFn::sum: return scan_all<ScanFn::sum, A>(px, py, e, reverse, inclusive);
      case ScanFn::prod: return scan_all<ScanFn::prod, A>(px, py, e, reverse, inclusive);
      case ScanFn::max: return scan_all<ScanFn::max, A>(px, py, e, reverse, inclusive);
      case ScanFn::min: return scan_all<ScanFn::min, A>(px, py, e, reverse, inclusive);
      case ScanFn::logaddexp: return scan_all<ScanFn::logaddexp, A>(px, py, e, reverse, inclusive);
    }
  });
}

}  // namespace sdx::cpu
