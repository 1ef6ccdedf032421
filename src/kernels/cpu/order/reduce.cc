#include "kernels/cpu/order/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/order/folds_simd.h"
#include "kernels/cpu/order/reductions.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;
// Sums of this many numbers are summed in turn: the error grows with the logarithm of the count.
constexpr std::int64_t kBlock = 128;

// The type in which sums and products of T are computed.
template <class T>
struct AccumulatorOf {
  using type = Computed<T>;
};
template <>
struct AccumulatorOf<bool> {
  using type = std::int32_t;
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct AccumulatorOf<T> {
  using type = std::conditional_t<sizeof(T) == 8, T, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <ReduceFn kFn, class A>
A combine(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    return static_cast<A>(kFn == ReduceFn::sum ? x + y : x * y);
  } else if constexpr (kFn == ReduceFn::sum) {
    return a + b;
  } else if constexpr (is_complex_v<A>) {
    return A(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

template <class A, class T>
A widened(T x) {
  return static_cast<A>(load(x));
}

// Tells whether folds_simd.h has sums of T in A.
template <class A, class T>
inline constexpr bool has_vectors = std::is_same_v<A, T> && !is_complex_v<T>;

template <ReduceFn kFn, class T>
const Fold& fold_of() {
  return kFn == ReduceFn::sum ? sums(DataTypeOf<T>::value) : products(DataTypeOf<T>::value);
}

// Keeps eight running results, so that additions do not wait for each other.
template <ReduceFn kFn, class A, class T>
A block_of_row(const T* x, std::int64_t n) {
  const A start = kFn == ReduceFn::sum ? A(0) : A(1);
  A part[8] = {start, start, start, start, start, start, start, start};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) part[k] = combine<kFn>(part[k], widened<A>(x[i + k]));
  }
  for (; i < n; ++i) part[0] = combine<kFn>(part[0], widened<A>(x[i]));
  for (int width = 4; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) part[k] = combine<kFn>(part[k], part[k + width]);
  }
  return part[0];
}

template <ReduceFn kFn, class A, class T>
A row_of(const T* x, std::int64_t n) {
  if constexpr (has_vectors<A, T>) {
    A y;
    fold_of<kFn, T>().row(x, n, &y);
    return y;
  }
  if (n <= kBlock) return block_of_row<kFn, A>(x, n);
  const std::int64_t half = n / 2 / 8 * 8;
  return combine<kFn>(row_of<kFn, A>(x, half), row_of<kFn, A>(x + half, n - half));
}

// Sums the columns of x[count, inner], in blocks of rows so that errors stay small.
template <ReduceFn kFn, class A, class T>
void columns_of(const T* x, std::int64_t count, std::int64_t inner, std::int64_t width, A* y) {
  const A start = kFn == ReduceFn::sum ? A(0) : A(1);
  std::fill_n(y, width, start);
  if (count > kBlock && !std::is_integral_v<A>) {
    std::vector<A> part(static_cast<std::size_t>(width));
    for (std::int64_t first = 0; first < count; first += kBlock) {
      columns_of<kFn, A>(x + first * inner, std::min(kBlock, count - first), inner, width, part.data());
      for (std::int64_t i = 0; i < width; ++i) y[i] = combine<kFn>(y[i], part[static_cast<std::size_t>(i)]);
    }
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const T* row = x + r * inner;
    if constexpr (has_vectors<A, T>) {
      fold_of<kFn, T>().merge(row, width, y);
    } else {
      for (std::int64_t i = 0; i < width; ++i) y[i] = combine<kFn>(y[i], widened<A>(row[i]));
    }
  }
}

template <class Out, class A>
Out stored(A value, ReduceFn fn, std::int64_t count) {
  if constexpr (!std::is_integral_v<A>) {
    if (fn == ReduceFn::mean) {
      if constexpr (is_complex_v<A>) {
        value /= static_cast<typename A::value_type>(count);
      } else {
        value /= static_cast<A>(count);
      }
    }
  }
  return static_cast<Out>(value);
}

// Returns how many outputs a thread takes: so many that it reads at least kGrain elements of x.
std::int64_t outputs_per_part(const Lanes& e) { return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, e.count)); }

template <ReduceFn kFn, class T>
void accumulate(ReduceFn fn, const T* x, void* y, const Lanes& e) {
  using A = Accumulator<T>;
  using Out = std::conditional_t<is_half_v<T>, T, A>;
  auto* out = static_cast<Out*>(y);
  if (e.inner == 1) {
    if (e.outer == 1 && e.count > 4 * kGrain) {
      // One long row is cut into parts of fixed length, so that the result does not depend on the number of threads.
      const std::int64_t parts = (e.count + kGrain - 1) / kGrain;
      std::vector<A> part(static_cast<std::size_t>(parts));
      parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) {
          part[static_cast<std::size_t>(p)] = row_of<kFn, A>(x + p * kGrain, std::min(kGrain, e.count - p * kGrain));
        }
      });
      out[0] = stored<Out>(row_of<kFn, A>(part.data(), parts), fn, e.count);
      return;
    }
    parallel_for(e.outer, outputs_per_part(e), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) out[o] = stored<Out>(row_of<kFn, A>(x + o * e.count, e.count), fn, e.count);
    });
    return;
  }
  // Columns are summed in strips of 256, which stay in the first-level cache.
  constexpr std::int64_t kStrip = 256;
  const std::int64_t strips = (e.inner + kStrip - 1) / kStrip;
  parallel_for(e.outer * strips, std::max<std::int64_t>(1, outputs_per_part(e) / kStrip),
               [&](std::int64_t begin, std::int64_t end) {
                 A sums[kStrip];
                 for (std::int64_t t = begin; t < end; ++t) {
                   const std::int64_t o = t / strips, first = t % strips * kStrip;
                   const std::int64_t width = std::min(kStrip, e.inner - first);
                   columns_of<kFn, A>(x + o * e.count * e.inner + first, e.count, e.inner, width, sums);
                   for (std::int64_t i = 0; i < width; ++i) out[o * e.inner + first + i] = stored<Out>(sums[i], fn, e.count);
                 }
               });
}

// Tells whether `x` displaces `best`: the first NaN displaces any number.
template <bool kMax, class T>
bool better(T x, T best) {
  if (nan_of(best)) return false;
  return nan_of(x) || (kMax ? before(best, x) : before(x, best));
}

template <bool kMax, class T>
void extreme(const T* x, T* y, const Lanes& e) {
  parallel_for(e.outer, std::max<std::int64_t>(1, outputs_per_part(e) / e.inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const T* from = x + o * e.count * e.inner;
      T* to = y + o * e.inner;
      std::copy_n(from, e.inner, to);
      for (std::int64_t r = 1; r < e.count; ++r) {
        const T* row = from + r * e.inner;
        for (std::int64_t i = 0; i < e.inner; ++i) to[i] = better<kMax>(row[i], to[i]) ? row[i] : to[i];
      }
    }
  });
}

template <bool kMax, class T>
void arg_extreme(const T* x, std::uint32_t* y, const Lanes& e) {
  parallel_for(e.outer, std::max<std::int64_t>(1, outputs_per_part(e) / e.inner), [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> best(static_cast<std::size_t>(e.inner));
    for (std::int64_t o = begin; o < end; ++o) {
      const T* from = x + o * e.count * e.inner;
      std::uint32_t* to = y + o * e.inner;
      std::copy_n(from, e.inner, best.begin());
      std::fill_n(to, e.inner, 0U);
      for (std::int64_t r = 1; r < e.count; ++r) {
        const T* row = from + r * e.inner;
        for (std::int64_t i = 0; i < e.inner; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (!better<kMax, T>(row[i], best[at])) continue;
          best[at] = row[i];
          to[i] = static_cast<std::uint32_t>(r);
        }
      }
    }
  });
}

// Finds the extreme of each row and then its place; takes columns in strips.
template <class I>
void plain_arg_extreme(DataType type, bool largest, bool last, const void* x, I* y, const Lanes& e) {
  const Fold& by = extremes(type, largest);
  const Places& where = places(type, largest);
  const auto bytes = static_cast<std::size_t>(bit_width(type)) / 8;
  const auto at = [&](std::int64_t i) { return static_cast<const char*>(x) + static_cast<std::size_t>(i) * bytes; };
  constexpr std::int64_t kStrip = 256;
  if (e.inner == 1) {
    return parallel_for(e.outer, outputs_per_part(e), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        alignas(8) char best[8];
        by.row(at(o * e.count), e.count, best);
        y[o] = static_cast<I>(where.find(at(o * e.count), e.count, best, last));
      }
    });
  }
  const std::int64_t strips = (e.inner + kStrip - 1) / kStrip;
  parallel_for(e.outer * strips, std::max<std::int64_t>(1, outputs_per_part(e) / kStrip),
               [&](std::int64_t begin, std::int64_t end) {
                 alignas(64) char best[kStrip * 8];
                 for (std::int64_t t = begin; t < end; ++t) {
                   const std::int64_t o = t / strips, first = t % strips * kStrip, width = std::min(kStrip, e.inner - first);
                   std::uint32_t found[kStrip] = {};
                   std::memcpy(best, at(o * e.count * e.inner + first), static_cast<std::size_t>(width) * bytes);
                   for (std::int64_t r = 1; r < e.count; ++r) {
                     const void* row = at((o * e.count + r) * e.inner + first);
                     where.merge(row, width, best, found, static_cast<std::uint32_t>(r), last);
                   }
                   std::copy_n(found, width, y + o * e.inner + first);
                 }
               });
}

void logical(bool all, const std::uint8_t* x, std::uint8_t* y, const Lanes& e) {
  parallel_for(e.outer, std::max<std::int64_t>(1, outputs_per_part(e) / e.inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const std::uint8_t* from = x + o * e.count * e.inner;
      std::uint8_t* to = y + o * e.inner;
      if (e.inner == 1) {
        const void* found = e.count == 0 ? nullptr : std::memchr(from, all ? 0 : 1, static_cast<std::size_t>(e.count));
        *to = static_cast<std::uint8_t>(all == (found == nullptr));
        continue;
      }
      std::fill_n(to, e.inner, static_cast<std::uint8_t>(all));
      for (std::int64_t r = 0; r < e.count; ++r) {
        const std::uint8_t* row = from + r * e.inner;
        for (std::int64_t i = 0; i < e.inner; ++i) to[i] = all ? to[i] & row[i] : to[i] | row[i];
      }
    }
  });
}

}  // namespace

DataType result_type_of(ReduceFn fn, DataType type) {
  if (fn == ReduceFn::argmax || fn == ReduceFn::argmin) return DataType::uint32;
  if (fn != ReduceFn::sum && fn != ReduceFn::prod) return type;
  switch (type) {
    case DataType::boolean:
    case DataType::int8:
    case DataType::int16: return DataType::int32;
    case DataType::uint8:
    case DataType::uint16: return DataType::uint32;
    default: return type;
  }
}

bool has_arg_extreme(DataType type) { return places(type, true).find != nullptr; }

void arg_extreme(DataType type, bool largest, bool last, const void* x, std::int64_t* y, const Lanes& e) {
  if (e.outer * e.inner > 0) plain_arg_extreme(type, largest, last, x, y, e);
}

void reduce(ReduceFn fn, DataType type, const void* x, void* y, const Lanes& e) {
  if (e.outer * e.inner == 0) return;
  const bool largest = fn == ReduceFn::max || fn == ReduceFn::argmax;
  if (extremes(type, largest).row != nullptr) {
    if (fn == ReduceFn::max) return reduce_typed(Reduce::max, type, x, y, e);
    if (fn == ReduceFn::min) return reduce_typed(Reduce::min, type, x, y, e);
    if (largest || fn == ReduceFn::argmin) return plain_arg_extreme(type, largest, false, x, static_cast<std::uint32_t*>(y), e);
  }
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* px = static_cast<const T*>(x);
    if (fn == ReduceFn::sum || fn == ReduceFn::mean) return accumulate<ReduceFn::sum>(fn, px, y, e);
    if (fn == ReduceFn::prod) return accumulate<ReduceFn::prod>(fn, px, y, e);
    // Extremes of all other types were found by vectors above.
    if constexpr (!std::is_arithmetic_v<T> || std::is_same_v<T, bool>) {
      if (fn == ReduceFn::max) return extreme<true>(px, static_cast<T*>(y), e);
      if (fn == ReduceFn::min) return extreme<false>(px, static_cast<T*>(y), e);
      if (fn == ReduceFn::argmax) return arg_extreme<true>(px, static_cast<std::uint32_t*>(y), e);
      if (fn == ReduceFn::argmin) return arg_extreme<false>(px, static_cast<std::uint32_t*>(y), e);
    }
    logical(fn == ReduceFn::all, static_cast<const std::uint8_t*>(x), static_cast<std::uint8_t*>(y), e);
  });
}

}  // namespace sdx::cpu
