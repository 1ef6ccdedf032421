#include "kernels/cpu/movement/gather.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/thread_pool.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 65536;  // bytes that are worth a thread

template <class Index>
struct Indices {
  const std::byte* at;
  std::int64_t extent;

  std::int64_t given(std::int64_t i) const {
    Index v;
    std::memcpy(&v, at + i * static_cast<std::int64_t>(sizeof(Index)), sizeof(Index));
    return v;
  }
  std::int64_t operator[](std::int64_t i) const {
    const std::int64_t v = given(i);
    return v < 0 ? v + extent : v;
  }
};

template <class F>
decltype(auto) with_indices(const GatherArgs& g, F&& f) {
  const auto* at = static_cast<const std::byte*>(g.indices);
  return g.wide ? f(Indices<std::int64_t>{at, g.extent}) : f(Indices<std::int32_t>{at, g.extent});
}

// Returns the number of stretches of consecutive indices.
template <class List>
std::int64_t stretches(const List& list, std::int64_t picks) {
  std::int64_t n = picks > 0 ? 1 : 0;
  for (std::int64_t i = 1; i < picks; ++i) n += list[i] != list[i - 1] + 1 ? 1 : 0;
  return n;
}

// Tells from the first indices whether copying whole stretches is worthwhile.
template <class List>
bool in_stretches(const GatherArgs& g, const List& list) {
  constexpr std::int64_t kSample = 256, kWorthACopy = 32;  // bytes of an average stretch
  const std::int64_t picks = std::min(g.picks, kSample), n = stretches(list, picks);
  return n < picks && picks * g.run >= kWorthACopy * n;
}

template <class List>
bool picks_all(const GatherArgs& g, const List& list) {
  return g.picks == g.extent && list[0] == 0 && list[g.picks - 1] == g.picks - 1 && stretches(list, g.picks) == 1;
}

// Copies one slice at a time. Sizes of 1 to 16 bytes are known at compile time, since a call of memcpy() would take as long as
// eight copies.
template <std::size_t kSize, class List>
void copy_slices(const GatherArgs& g, const List& list, std::byte* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t run = kSize != 0 ? static_cast<std::int64_t>(kSize) : g.run;
  const std::size_t bytes = kSize != 0 ? kSize : static_cast<std::size_t>(g.run);
  const auto* from = static_cast<const std::byte*>(g.data) + begin / g.picks * g.extent * run;
  for (std::int64_t i = begin, j = begin % g.picks; i < end; j = 0, from += g.extent * run) {
    for (const std::int64_t stop = std::min(end, i + g.picks - j); i < stop; ++i, ++j) {
      std::memcpy(y + i * run, from + list[j] * run, bytes);
    }
  }
}

// Copies stretches of consecutive indices, as windows have them, one at a time.
template <class List>
void copy_stretches(const GatherArgs& g, const List& list, std::byte* y, std::int64_t begin, std::int64_t end) {
  const auto* from = static_cast<const std::byte*>(g.data) + begin / g.picks * g.extent * g.run;
  for (std::int64_t i = begin, j = begin % g.picks; i < end; j = 0, from += g.extent * g.run) {
    const std::int64_t stop = std::min(end, i + g.picks - j);
    while (i < stop) {
      const std::int64_t first = list[j];
      std::int64_t n = 1;
      while (i + n < stop && list[j + n] == first + n) ++n;
      std::memcpy(y + i * g.run, from + first * g.run, static_cast<std::size_t>(n * g.run));
      i += n;
      j += n;
    }
  }
}

template <class List>
auto slices_of(std::int64_t run) {
  switch (run) {
    case 1: return copy_slices<1, List>;
    case 2: return copy_slices<2, List>;
    case 4: return copy_slices<4, List>;
    case 8: return copy_slices<8, List>;
    case 16: return copy_slices<16, List>;
    default: return copy_slices<0, List>;
  }
}

template <class List>
void gather_by(const GatherArgs& g, const List& list, std::byte* y) {
  if (picks_all(g, list)) {
    const auto* from = static_cast<const std::byte*>(g.data);
    parallel_for(g.outer * g.picks * g.run, kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(y + begin, from + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  const auto copy = in_stretches(g, list) ? copy_stretches<List> : slices_of<List>(g.run);
  parallel_for(g.outer * g.picks, std::max<std::int64_t>(1, kGrain / g.run),
               [&](std::int64_t begin, std::int64_t end) { copy(g, list, y, begin, end); });
}

}  // namespace

std::optional<std::int64_t> index_out_of_range(const GatherArgs& g) {
  return with_indices(g, [&](const auto& list) -> std::optional<std::int64_t> {
    // One comparison checks both ends, and no index ends the loop.
    const auto outside = [&](std::int64_t at) {
      return static_cast<std::uint64_t>(at) + static_cast<std::uint64_t>(g.extent) >= 2 * static_cast<std::uint64_t>(g.extent);
    };
    bool found = false;
    for (std::int64_t i = 0; i < g.picks; ++i) found |= outside(list.given(i));
    if (!found) return std::nullopt;
    std::int64_t i = 0;
    while (!outside(list.given(i))) ++i;
    return list.given(i);
  });
}

void gather(const GatherArgs& g, void* y) {
  if (g.run == 0 || g.outer == 0 || g.picks == 0) return;
  with_indices(g, [&](const auto& list) { gather_by(g, list, static_cast<std::byte*>(y)); });
}

}  // namespace sdx::cpu
