#include "kernels/cpu/order/sort_keys_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/order/sort_keys_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
// Without Highway's library: it has random numbers that keep an attacker from choosing slow keys; here, the clock does.
#define VQSORT_ONLY_STATIC 1
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>
#include <hwy/highway.h>

#include <algorithm>

// Not SDX_BEFORE_NAMESPACE(): the sort is in Highway's headers, which use this one, and GCC inlines no function of another
// optimisation level.
HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <class K>
void sort_keys(K* keys, std::int64_t n) {
#if VQSORT_ENABLED
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<K>>> order;
  // Highway 1.0 has a buffer of its own, of at most 8 KiB; later releases write to this one, at most 1664 bytes.
  HWY_ALIGN K buffer[8192 / sizeof(K)];
  hn::Sort(hn::SortTag<K>(), order, keys, static_cast<std::size_t>(n), buffer);
#else  // without vectors
  std::sort(keys, keys + n);
#endif
}

}  // namespace

const KeySorters& sorter_table() {
  static constexpr KeySorters kTable{sort_keys<std::uint32_t>, sort_keys<std::uint64_t>};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/contrib/sort/vqsort.h>  // which Highway 1.2's sort does not include

#include <cstring>

#include "kernels/cpu/simd/dispatch.h"

// Provides the random numbers that choose pivots. Highway's own function, in a library that is not linked here, asks the system
// for them; with fixed ones, runs are reproducible, and the sort falls back to a heap where pivots are bad.
void hwy::Sorter::Fill24Bytes(const void*, std::size_t, void* bytes) {
  constexpr unsigned char kSeed[24] = {0x9E, 0x37, 0x79, 0xB9, 0x7F, 0x4A, 0x7C, 0x15, 0xF3, 0x9C, 0xC0, 0x60,
                                       0x5C, 0xED, 0xC8, 0x34, 0x10, 0x82, 0x27, 0x6B, 0xF3, 0xA2, 0x72, 0x51};
  std::memcpy(bytes, kSeed, sizeof(kSeed));
}

namespace sdx::cpu {

const KeySorters& key_sorters() { return SDX_CPU_PICK(sorter_table)(); }

}  // namespace sdx::cpu
#endif
