#include "kernels/cpu/order/sort.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/order/sort_keys_simd.h"
#include "tensor/radix_sort.h"
#include "tensor/sort_keys.h"

namespace sdx::cpu {
namespace {

// Highway's sort takes 3 ns for each of a million numbers of 32 bits and 40 for one of 64, where its partitions leave the cache.
constexpr std::int64_t kVectorsBelow = 4096;

// Orders NaN last. As in NumPy, a complex number with NaN in its imaginary part alone comes before one with NaN in its real part.
template <class T>
bool complex_before(std::complex<T> a, std::complex<T> b) {
  const bool real_a = a.real() != a.real(), real_b = b.real() != b.real();
  if (real_a || real_b) {
    if (real_a != real_b) return real_b;
  } else if (a.real() != b.real()) {
    const bool imag_a = a.imag() != a.imag(), imag_b = b.imag() != b.imag();
    return imag_a != imag_b ? imag_b : a.real() < b.real();
  }
  return b.imag() != b.imag() ? a.imag() == a.imag() : a.imag() < b.imag();
}

// Compares keys alone. A partition leaves the order of its elements open: values and places get the same order only because the
// same comparisons lead to it, and gradients rely on the places.
struct KeyBefore {
  template <class K>
  bool operator()(K a, K b) const {
    return a < b;
  }
  template <class K>
  bool operator()(const Placed<K>& a, const Placed<K>& b) const {
    return a.key < b.key;
  }
};

// Calls lane(first element, number, split) for each lane; `split` tells whether it may use all threads itself.
template <class F>
void for_lanes(const Lanes& e, F&& lane) {
  const std::int64_t lanes = e.outer * e.inner;
  const bool split = lanes == 1;
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, e.count));
  parallel_for(lanes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t l = begin; l < end; ++l) lane(l / e.inner * e.count * e.inner + l % e.inner, l, split);
  });
}

template <class T>
T* scratch_of(std::int64_t n) {
  static thread_local std::vector<T> kept;  // many threads sort rows at once
  // Memory of long rows is freed by the next short one.
  if (kept.size() > (std::size_t{1} << 20) && static_cast<std::size_t>(n) < kept.size() / 8) std::vector<T>().swap(kept);
  if (kept.size() < static_cast<std::size_t>(n)) kept.resize(static_cast<std::size_t>(n));
  return kept.data();
}

template <class T>
void load_keys(const T* x, std::int64_t step, SortKey<T>* keys, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) keys[i] = sort_key(x[i * step]);
}

template <class T>
void load_pairs(const T* x, std::int64_t step, Placed<SortKey<T>>* pairs, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) pairs[i] = {sort_key(x[i * step]), static_cast<std::uint32_t>(i)};
}

template <class T>
void complex_indices(const T* x, const Lanes& e, std::uint32_t* places) {
  std::iota(places, places + e.count, 0U);
  std::stable_sort(places, places + e.count, [&](std::uint32_t a, std::uint32_t b) {
    return complex_before(x[static_cast<std::int64_t>(a) * e.inner], x[static_cast<std::int64_t>(b) * e.inner]);
  });
}

// Sorts numbers of 32 bits, and a few thousand of 64 bits, by vectors; the others digit by digit, which takes a third of the
// time.
template <class T>
void sort_lane(const T* x, T* y, std::int64_t step, std::int64_t n, bool split) {
  const bool by_vectors = sizeof(T) == 4 || (sizeof(T) == 8 && n < kVectorsBelow);
  SortKey<T>* keys = scratch_of<SortKey<T>>(by_vectors ? n : 2 * n);
  load_keys(x, step, keys, n);
  if (!by_vectors) radix_sort(keys, keys + n, n, split);
  if constexpr (sizeof(T) == 4) key_sorters().u32(keys, n);
  if constexpr (sizeof(T) == 8) {
    if (by_vectors) key_sorters().u64(keys, n);
  }
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = of_sort_key<T>(keys[i]);
}

template <class T>
void sort_typed(const T* x, T* y, const Lanes& e) {
  for_lanes(e, [&](std::int64_t at, std::int64_t, bool split) {
    if constexpr (is_complex_v<T>) {
      std::uint32_t* places = scratch_of<std::uint32_t>(e.count);
      complex_indices(x + at, e, places);
      for (std::int64_t i = 0; i < e.count; ++i) y[at + i * e.inner] = x[at + static_cast<std::int64_t>(places[i]) * e.inner];
      static_cast<void>(split);
    } else {
      sort_lane(x + at, y + at, e.inner, e.count, split);
    }
  });
}

// Sorts short rows of keys of up to 32 bits, together with their places in the lower half of one number. No two numbers are
// equal, so the order is that of a stable sort.
template <class T>
void argsort_lane(const T* x, std::uint32_t* y, std::int64_t step, std::int64_t n, bool split) {
  if constexpr (sizeof(T) <= 4) {
    if (n < kVectorsBelow / 4) {
      std::uint64_t* keys = scratch_of<std::uint64_t>(n);
      for (std::int64_t i = 0; i < n; ++i) keys[i] = std::uint64_t{sort_key(x[i * step])} << 32 | static_cast<std::uint64_t>(i);
      key_sorters().u64(keys, n);
      for (std::int64_t i = 0; i < n; ++i) y[i * step] = static_cast<std::uint32_t>(keys[i]);
      return;
    }
  }
  using Pair = Placed<SortKey<T>>;
  Pair* pairs = scratch_of<Pair>(2 * n);
  load_pairs(x, step, pairs, n);
  radix_sort(pairs, pairs + n, n, split);
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = pairs[i].place;
}

template <class T>
void argsort_typed(const T* x, std::uint32_t* y, const Lanes& e) {
  for_lanes(e, [&](std::int64_t at, std::int64_t, bool split) {
    if constexpr (is_complex_v<T>) {
      std::uint32_t* places = scratch_of<std::uint32_t>(e.count);
      complex_indices(x + at, e, places);
      for (std::int64_t i = 0; i < e.count; ++i) y[at + i * e.inner] = places[i];
      static_cast<void>(split);
    } else {
      argsort_lane(x + at, y + at, e.inner, e.count, split);
    }
  });
}

// Writes elements [first, last) of the partitioned lane to y.
template <class T>
void partition_typed(const T* x, T* y, const Lanes& e, std::int64_t kth, std::int64_t first, std::int64_t last) {
  for_lanes(e, [&](std::int64_t at, std::int64_t lane, bool) {
    const std::int64_t to = lane / e.inner * (last - first) * e.inner + lane % e.inner;
    if constexpr (is_complex_v<T>) {
      std::uint32_t* places = scratch_of<std::uint32_t>(e.count);
      complex_indices(x + at, e, places);
      for (std::int64_t i = first; i < last; ++i) y[to + (i - first) * e.inner] = x[at + places[i] * e.inner];
      static_cast<void>(kth);
    } else {
      SortKey<T>* keys = scratch_of<SortKey<T>>(e.count);
      load_keys(x + at, e.inner, keys, e.count);
      std::nth_element(keys, keys + kth, keys + e.count, KeyBefore());
      for (std::int64_t i = first; i < last; ++i) y[to + (i - first) * e.inner] = of_sort_key<T>(keys[i]);
    }
  });
}

template <class T>
void argpartition_typed(const T* x, std::uint32_t* y, const Lanes& e, std::int64_t kth) {
  for_lanes(e, [&](std::int64_t at, std::int64_t, bool) {
    if constexpr (is_complex_v<T>) {
      std::uint32_t* places = scratch_of<std::uint32_t>(e.count);
      complex_indices(x + at, e, places);
      for (std::int64_t i = 0; i < e.count; ++i) y[at + i * e.inner] = places[i];
      static_cast<void>(kth);
    } else {
      using Pair = Placed<SortKey<T>>;
      Pair* pairs = scratch_of<Pair>(e.count);
      load_pairs(x + at, e.inner, pairs, e.count);
      std::nth_element(pairs, pairs + kth, pairs + e.count, KeyBefore());
      for (std::int64_t i = 0; i < e.count; ++i) y[at + i * e.inner] = pairs[i].place;
    }
  });
}

template <class T>
bool sorts_before(T a, T b) {
  if constexpr (is_complex_v<T>) {
    return complex_before(a, b);
  } else {
    const bool nan = nan_of(a);
    return !nan && (nan_of(b) || before(a, b));
  }
}

}  // namespace

void sort_lanes(DataType type, const void* x, void* y, const Lanes& e) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    sort_typed(static_cast<const T*>(x), static_cast<T*>(y), e);
  });
}

void argsort_lanes(DataType type, const void* x, std::uint32_t* y, const Lanes& e) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    argsort_typed(static_cast<const T*>(x), y, e);
  });
}

void partition_lanes(DataType type, const void* x, void* y, const Lanes& e, std::int64_t kth, std::int64_t first,
                     std::int64_t last) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    partition_typed(static_cast<const T*>(x), static_cast<T*>(y), e, kth, first, last);
  });
}

void argpartition_lanes(DataType type, const void* x, std::uint32_t* y, const Lanes& e, std::int64_t kth) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    argpartition_typed(static_cast<const T*>(x), y, e, kth);
  });
}

void search_sorted(DataType type, const void* x, std::int64_t count, const void* values, std::uint32_t* y, std::int64_t n,
                   bool right) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto *first = static_cast<const T*>(x), *wanted = static_cast<const T*>(values);
    parallel_for(n, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* at = right ? std::upper_bound(first, first + count, wanted[i], sorts_before<T>)
                            : std::lower_bound(first, first + count, wanted[i], sorts_before<T>);
        y[i] = static_cast<std::uint32_t>(at - first);
      }
    });
  });
}

}  // namespace sdx::cpu
