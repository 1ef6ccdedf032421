#pragma once
// A stable radix sort, least digit first. Digits have 8 bits: with 11, the 2048 places that a pass writes to are more pages than
// the processor keeps addresses of, and passes take four times as long.

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"

namespace sdx {

// A key with the place that it comes from.
template <class K>
struct Placed {
  K key;
  std::uint32_t place;
};

template <class K>
K digits_of(K key) {
  return key;
}
template <class K>
K digits_of(const Placed<K>& item) {
  return item.key;
}

// Shorter rows are sorted by comparisons.
inline constexpr std::int64_t kRadixFrom = 96;
inline constexpr int kRadixBits = 8;
// From this size on, passes are split over threads, in this many parts, each with a histogram of its own.
inline constexpr std::int64_t kRadixSplitFrom = 1 << 17, kRadixParts = 8;

template <class Item>
void count_digits(const Item* items, std::int64_t n, int shift, std::uint32_t* counts) {
  constexpr std::uint32_t kMask = (1U << kRadixBits) - 1;
  for (std::int64_t i = 0; i < n; ++i) ++counts[static_cast<std::uint32_t>(digits_of(items[i]) >> shift) & kMask];
}

template <class Item>
void move_digits(const Item* from, Item* to, std::int64_t n, int shift, std::uint32_t* next) {
  constexpr std::uint32_t kMask = (1U << kRadixBits) - 1;
  for (std::int64_t i = 0; i < n; ++i) to[next[static_cast<std::uint32_t>(digits_of(from[i]) >> shift) & kMask]++] = from[i];
}

// The bits in which keys differ.
template <class Item>
auto differing_bits(const Item* items, std::int64_t n) {
  auto bits = digits_of(items[0]);
  bits = 0;
  for (std::int64_t i = 1; i < n; ++i) bits |= digits_of(items[i]) ^ digits_of(items[0]);
  return bits;
}

// One digit.
template <class Item>
void radix_pass(const Item* from, Item* to, std::int64_t n, int shift, std::vector<std::uint32_t>& counts, std::int64_t parts) {
  constexpr std::size_t kBuckets = std::size_t{1} << kRadixBits;
  counts.assign(kBuckets * static_cast<std::size_t>(parts), 0);
  const auto begin_of = [&](std::int64_t p) { return n * p / parts; };
  const auto each_part = [&](auto&& work) {
    if (parts == 1) return work(0);
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) work(p);
    });
  };
  each_part([&](std::int64_t p) {
    count_digits(from + begin_of(p), begin_of(p + 1) - begin_of(p), shift,
                 counts.data() + static_cast<std::size_t>(p) * kBuckets);
  });
  std::uint32_t before = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    for (std::size_t p = 0; p < static_cast<std::size_t>(parts); ++p) {
      std::uint32_t& count = counts[p * kBuckets + b];
      const std::uint32_t here = count;
      count = before;
      before += here;
    }
  }
  each_part([&](std::int64_t p) {
    move_digits(from + begin_of(p), to, begin_of(p + 1) - begin_of(p), shift,
                counts.data() + static_cast<std::size_t>(p) * kBuckets);
  });
}

template <class Item>
void radix_passes(Item* items, Item* scratch, std::int64_t n, std::int64_t parts) {
  constexpr int kKeyBits = static_cast<int>(sizeof(decltype(digits_of(*items)))) * 8;
  static thread_local std::vector<std::uint32_t> counts;  // memory alone, written before it is read
  const std::uint64_t differing = differing_bits(items, n);
  Item *from = items, *to = scratch;
  for (int shift = 0; shift < kKeyBits; shift += kRadixBits) {
    if ((differing >> shift) % (1U << kRadixBits) == 0) continue;
    radix_pass(from, to, n, shift, counts, parts);
    std::swap(from, to);
  }
  if (from != items) std::memcpy(items, from, static_cast<std::size_t>(n) * sizeof(Item));
}

// Sorts items[n] by their keys; n < 2^32. `scratch` holds as many. `split`: this row may use all threads.
template <class Item>
void radix_sort(Item* items, Item* scratch, std::int64_t n, bool split) {
  const auto by_key = [](const Item& a, const Item& b) { return digits_of(a) < digits_of(b); };
  if (n < kRadixFrom) {
    // Insertion sort: stable, and the fastest for a few dozens.
    for (std::int64_t i = 1; i < n; ++i) {
      const Item item = items[i];
      std::int64_t at = i;
      for (; at > 0 && by_key(item, items[at - 1]); --at) items[at] = items[at - 1];
      items[at] = item;
    }
    return;
  }
  const std::int64_t parts = split && n >= kRadixSplitFrom ? kRadixParts : 1;
  radix_passes(items, scratch, n, parts);
}

}  // namespace sdx
