#include "kernels/cpu/order/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/order/folds_simd.h"
#include "kernels/cpu/order/sort_keys_simd.h"
#include "kernels/cpu/order/top_columns_simd.h"
#include "tensor/sort_keys.h"

namespace sdx::cpu {
namespace {

// A rank, larger for elements that come first. For elements of up to 32 bits it is one number: the key in the upper half and, in
// the lower, a number that falls with the place.
struct WideRank {
  std::uint64_t key;
  std::uint32_t rest;
  bool operator<(const WideRank& o) const { return key != o.key ? key < o.key : rest < o.rest; }
  bool operator>(const WideRank& o) const { return o < *this; }
};
template <class T>
using Rank = std::conditional_t<sizeof(T) == 8, WideRank, std::uint64_t>;

// NaN ranks above everything, or below everything if the smallest elements come first; -0 equals 0.
template <class T>
Rank<T> rank_of(T v, std::int64_t at, bool largest) {
  if constexpr (std::is_floating_point_v<T>) v += T(0);
  SortKey<T> key = sort_key(v);
  if (!largest) key = static_cast<SortKey<T>>(~key);
  const std::uint32_t rest = 0xFFFFFFFFU - static_cast<std::uint32_t>(at);
  if constexpr (sizeof(T) == 8) {
    return {key, rest};
  } else {
    return std::uint64_t{key} << 32 | rest;
  }
}
template <class R>
std::int64_t position_of(const R& rank) {
  if constexpr (std::is_same_v<R, WideRank>) {
    return 0xFFFFFFFFU - rank.rest;
  } else {
    return 0xFFFFFFFFU - static_cast<std::uint32_t>(rank);
  }
}

template <class T>
struct Row {
  const T* x;
  std::int64_t n, k;
  bool largest;
  NextBeyond next;

  Rank<T> rank(std::int64_t i) const { return rank_of(x[i], i, largest); }
  std::int64_t beyond(std::int64_t from, T bound) const { return next(x, from, n, &bound, largest); }
};

// Keeps the k largest ranks sorted while it searches the row for elements beyond the last of them, which are rare.
template <class T>
void top_few(const Row<T>& r, Rank<T>* kept) {
  for (std::int64_t i = 0; i < r.k; ++i) kept[i] = r.rank(i);
  std::sort(kept, kept + r.k, std::greater<>());
  const auto least = [&] { return r.x[position_of(kept[r.k - 1])]; };
  for (std::int64_t i = r.beyond(r.k, least()); i < r.n; i = r.beyond(i + 1, least())) {
    const Rank<T> rank = r.rank(i);
    if (rank < kept[r.k - 1]) continue;
    std::int64_t at = r.k - 1;
    for (; at > 0 && kept[at - 1] < rank; --at) kept[at] = kept[at - 1];
    kept[at] = rank;
  }
}

// Moves the k largest of the first `count` ranks to the front, in any order.
template <class R>
void keep_largest(R* ranks, std::int64_t k, std::int64_t count) {
  if (count > k) std::nth_element(ranks, ranks + k - 1, ranks + count, std::greater<>());
}

// Searches with a k too large to keep the ranks sorted cheaply: collects up to k more ranks beside the best k, then chooses the
// best again.
template <class T>
void top_some(const Row<T>& r, Rank<T>* kept) {
  const std::int64_t k = r.k, room = std::min(r.n, 2 * k);
  for (std::int64_t i = 0; i < room; ++i) kept[i] = r.rank(i);
  keep_largest(kept, k, room);
  std::int64_t count = k, i = room;
  T least = r.x[position_of(kept[k - 1])];
  while ((i = r.beyond(i, least)) < r.n) {
    kept[count++] = r.rank(i);
    ++i;
    if (count < room) continue;
    keep_largest(kept, k, count);
    count = k;
    least = r.x[position_of(kept[k - 1])];
  }
  keep_largest(kept, k, count);
  std::sort(kept, kept + k, std::greater<>());
}

std::uint64_t key_of(const WideRank& rank) { return rank.key; }
std::uint64_t key_of(std::uint64_t rank) { return rank >> 32; }

// Returns the first k of the ranks, the largest first.
template <class R>
void sort_first(R* ranks, R* end, std::int64_t k) {
  if constexpr (std::is_same_v<R, std::uint64_t>) {
    key_sorters().u64(ranks, end - ranks);
    std::reverse(ranks, end);
  } else {
    if (end - ranks > k) std::nth_element(ranks, ranks + k, end, std::greater<>());
    std::sort(ranks, ranks + k, std::greater<>());
  }
}

// Counts keys in 2048 bins between the least and the largest key, or in 8192 where exponents have 11 bits. All ranks of the bins
// above one of them are among the k largest; this bin supplies the rest.
template <class T>
void top_many(const Row<T>& r, Rank<T>* ranks) {
  constexpr int kBits = sizeof(T) == 8 ? 13 : 11;
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (std::int64_t i = 0; i < r.n; ++i) {
    ranks[i] = r.rank(i);
    least = std::min(least, key_of(ranks[i]));
    most = std::max(most, key_of(ranks[i]));
  }
  const int shift = std::max(0, static_cast<int>(std::bit_width(most - least)) - kBits);
  const auto bin_of = [&](const Rank<T>& rank) { return (key_of(rank) - least) >> shift; };
  std::uint32_t counts[std::size_t{1} << kBits] = {};
  for (std::int64_t i = 0; i < r.n; ++i) ++counts[bin_of(ranks[i])];
  std::uint64_t bin = std::size(counts);
  for (std::int64_t above = 0; above < r.k;) above += counts[--bin];
  Rank<T>* end = ranks;
  for (std::int64_t i = 0; i < r.n; ++i) {
    const Rank<T> rank = ranks[i];
    *end = rank;
    end += bin_of(rank) >= bin ? 1 : 0;
  }
  sort_first(ranks, end, r.k);
}

template <class T>
void top_typed(const TopK& s, const T* x, T* values, std::int64_t* indices, Rank<T>* ranks) {
  if (s.step != 1) {
    auto* lane = reinterpret_cast<T*>(ranks + s.n);
    for (std::int64_t i = 0; i < s.n; ++i) lane[i] = x[i * s.step];
    x = lane;
  }
  constexpr std::int64_t kFew = 32, kSparse = 16;
  const Row<T> row{x, s.n, s.k, s.largest, next_beyond(s.type)};
  (s.k <= kFew ? top_few<T> : (s.k <= s.n / kSparse ? top_some<T> : top_many<T>))(row, ranks);
  for (std::int64_t i = 0; i < s.k; ++i) {
    const std::int64_t at = position_of(ranks[i]);
    if (indices != nullptr) indices[i * s.step] = at;
    if (values != nullptr) values[i * s.step] = x[at];
  }
}

}  // namespace

bool has_top_k(DataType type) { return next_beyond(type) != nullptr; }

std::size_t top_k_bytes(const TopK& s) {
  const std::size_t rank = bit_width(s.type) == 64 ? sizeof(WideRank) : sizeof(std::uint64_t);
  return static_cast<std::size_t>(s.n) * (rank + (s.step == 1 ? 0 : sizeof(std::uint64_t)));
}

void top_k(const TopK& s, const void* x, void* values, std::int64_t* indices, void* scratch) {
  with_type(s.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      top_typed(s, static_cast<const T*>(x), static_cast<T*>(values), indices, static_cast<Rank<T>*>(scratch));
    }
  });
}

void top_k_columns_f32(const float* x, std::int64_t n, std::int64_t step, std::int64_t columns, std::int64_t k, bool largest,
                       float* values, std::int64_t* indices) {
  constexpr std::int64_t kMostLanes = 16;
  const TopColumnsKernels& kernels = top_columns_kernels();
  std::int32_t positions[kMostTopColumns * kMostLanes];
  for (std::int64_t c = 0; c < columns; c += kernels.lanes) {
    const std::int64_t count = std::min<std::int64_t>(kernels.lanes, columns - c);
    kernels.top(x + c, n, step, count, k, largest, positions);
    for (std::int64_t j = 0; j < k; ++j) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = positions[j * kernels.lanes + i];
        if (values != nullptr) values[j * step + c + i] = x[at * step + c + i];
        if (indices != nullptr) indices[j * step + c + i] = at;
      }
    }
  }
}

}  // namespace sdx::cpu
