// copy_strided: the loops behind Expand, Tile, Slice, Split, Transpose, DepthToSpace and their like. Built with -O3: GCC 12
// vectorises loops of unknown length from there on.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

// Squares of this side stay in the first-level cache for elements of up to 8 bytes: 2 * 32 * 32 * 8 = 16 KiB.
constexpr std::int64_t kTile = 32;

std::int64_t volume(const std::vector<CopyAxis>& axes) {
  std::int64_t n = 1;
  for (const CopyAxis& a : axes) n *= a.extent;
  return n;
}

// Drops extents of 1 and joins neighbours that both sides step through evenly.
std::vector<CopyAxis> collapsed(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> out;
  out.reserve(axes.size());
  for (const CopyAxis& a : axes) {
    if (a.extent == 1) continue;
    if (!out.empty() && out.back().from == a.from * a.extent && out.back().to == a.to * a.extent) {
      out.back() = {out.back().extent * a.extent, a.from, a.to};
    } else {
      out.push_back(a);
    }
  }
  return out;
}

// Offsets of the `index`-th iteration of nested loops, and stepping to the next one.
class Odometer {
 public:
  Odometer(const std::vector<CopyAxis>& axes, std::int64_t index) : axes_(axes), at_(axes.size()) {
    for (std::size_t i = axes.size(); i-- > 0;) {
      at_[i] = index % axes[i].extent;
      index /= axes[i].extent;
      from += at_[i] * axes[i].from;
      to += at_[i] * axes[i].to;
    }
  }
  void next() {
    for (std::size_t i = axes_.size(); i-- > 0;) {
      from += axes_[i].from;
      to += axes_[i].to;
      if (++at_[i] < axes_[i].extent) return;
      from -= axes_[i].from * axes_[i].extent;
      to -= axes_[i].to * axes_[i].extent;
      at_[i] = 0;
    }
  }
  std::int64_t from = 0;
  std::int64_t to = 0;

 private:
  const std::vector<CopyAxis>& axes_;
  Ints at_;
};

// Long runs are filled with copies of their beginning: the library's memcpy has wider stores than this file is compiled for.
template <class T>
void fill_run(T* to, std::int64_t count, const T& value) {
  constexpr auto kBegin = static_cast<std::int64_t>(2048 / sizeof(T));
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (count > 2 * kBegin) {
      const T* const begin = to;
      std::fill_n(to, kBegin, value);
      for (std::int64_t at = kBegin; at < count; at += kBegin) copy_units(begin, to + at, std::min(kBegin, count - at));
      return;
    }
  }
  std::fill_n(to, count, value);
}

// Copies to a dense destination. Steps that occur often are constants, so that the compiler vectorises: 2 in Slice and
// SpaceToDepth, -1 in reversed axes.
template <class T>
void copy_run(const T* __restrict from, T* __restrict to, std::int64_t count, std::int64_t step) {
  switch (step) {
    case 0: fill_run(to, count, T(*from)); return;
    case 1: copy_units(from, to, count); return;
    case 2:
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
      return;
    case -1:
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[-i];
      return;
    default:
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

// Copies `count` rows, each a run.
template <class T>
void copy_rows(const T* from, T* to, const CopyAxis& rows, std::int64_t count, const CopyAxis& run) {
  if (run.to == 1) {
    for (std::int64_t r = 0; r < count; ++r) copy_run(from + r * rows.from, to + r * rows.to, run.extent, run.from);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const T* f = from + r * rows.from;
    T* t = to + r * rows.to;
    for (std::int64_t i = 0; i < run.extent; ++i) t[i * run.to] = f[i * run.from];
  }
}

template <class T>
void copy_tile(const T* from, T* to, const CopyAxis& rows, std::int64_t row_begin, std::int64_t row_end, const CopyAxis& cols) {
  for (std::int64_t c0 = 0; c0 < cols.extent; c0 += kTile) {
    const std::int64_t c1 = std::min(cols.extent, c0 + kTile);
    for (std::int64_t r = row_begin; r < row_end; ++r) {
      const T* f = from + r * rows.from;
      T* t = to + r * rows.to;
      for (std::int64_t c = c0; c < c1; ++c) t[c * cols.to] = f[c * cols.from];
    }
  }
}

// A transposition: `rows` steps through the source one by one, `cols` through the destination. Tiles keep both in cache.
template <class T>
void copy_transposed(const T* from, T* to, const std::vector<CopyAxis>& outer, const CopyAxis& rows, const CopyAxis& cols) {
  const std::int64_t bands = (rows.extent + kTile - 1) / kTile;
  const std::int64_t band_bytes = kTile * cols.extent * static_cast<std::int64_t>(sizeof(T));
  parallel_for(volume(outer) * bands, grain_for(band_bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Odometer at(outer, i / bands);
      const std::int64_t r0 = (i % bands) * kTile;
      copy_tile(from + at.from, to + at.to, rows, r0, std::min(rows.extent, r0 + kTile), cols);
    }
  });
}

// Interleaves kWays runs of the source, or separates them again.
template <int kWays, class T>
void weave(const T* __restrict from, T* __restrict to, std::int64_t count, std::int64_t apart) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < kWays; ++k) to[i * kWays + k] = from[k * apart + i];
  }
}
template <int kWays, class T>
void unweave(const T* __restrict from, T* __restrict to, std::int64_t count, std::int64_t apart) {
  for (int k = 0; k < kWays; ++k) {
    for (std::int64_t i = 0; i < count; ++i) to[k * apart + i] = from[i * kWays + k];
  }
}

template <int kWays, class T>
void copy_woven(const T* from, T* to, const std::vector<CopyAxis>& outer, const CopyAxis& run, const CopyAxis& ways) {
  const std::int64_t bytes = run.extent * kWays * static_cast<std::int64_t>(sizeof(T));
  parallel_for(volume(outer), grain_for(bytes), [&](std::int64_t begin, std::int64_t end) {
    Odometer at(outer, begin);
    for (std::int64_t i = begin; i < end; ++i, at.next()) {
      if (run.from == 1) {
        weave<kWays>(from + at.from, to + at.to, run.extent, ways.from);
      } else {
        unweave<kWays>(from + at.from, to + at.to, run.extent, ways.to);
      }
    }
  });
}

// Copies two axes if one has 2 to 4 elements that are contiguous on one side, and the other is contiguous on the other side:
// blocks of DepthToSpace and SpaceToDepth, channels of pictures. True: done.
template <class T>
bool copy_few_ways(const T* from, T* to, std::vector<CopyAxis>& axes) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    for (std::size_t w = 0; w < axes.size(); ++w) {
      const CopyAxis ways = axes[w];
      if (ways.extent > 4 || (ways.to != 1 && ways.from != 1)) continue;
      const auto run = std::find_if(axes.begin(), axes.end(), [&](const CopyAxis& a) {
        if (a.extent < 8) return false;
        return (ways.to == 1 && a.to == ways.extent && a.from == 1) || (ways.from == 1 && a.from == ways.extent && a.to == 1);
      });
      if (run == axes.end()) continue;
      const CopyAxis long_axis = *run;
      std::vector<CopyAxis> outer;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if (i != w && i != static_cast<std::size_t>(run - axes.begin())) outer.push_back(axes[i]);
      }
      if (ways.extent == 2) copy_woven<2>(from, to, outer, long_axis, ways);
      if (ways.extent == 3) copy_woven<3>(from, to, outer, long_axis, ways);
      if (ways.extent == 4) copy_woven<4>(from, to, outer, long_axis, ways);
      return true;
    }
  }
  return false;
}

// The loops around dense runs: the innermost of them without an odometer.
template <class T>
void copy_runs(const T* from, T* to, std::vector<CopyAxis> axes, const CopyAxis& run) {
  if (axes.empty()) {  // one run, cut or it would stay on one thread
    return parallel_for(run.extent, grain_for(sizeof(T)), [&](std::int64_t begin, std::int64_t end) {
      const CopyAxis part{end - begin, run.from, run.to};
      copy_rows(from + begin * run.from, to + begin * run.to, CopyAxis{1, 0, 0}, 1, part);
    });
  }
  // Few rows at a time would cost a step of the odometer each: the longer of the two innermost axes is the loop.
  if (axes.size() > 1 && axes.back().extent < 8 && axes[axes.size() - 2].extent > axes.back().extent) {
    std::swap(axes.back(), axes[axes.size() - 2]);
  }
  const CopyAxis rows = axes.back();
  axes.pop_back();
  const std::int64_t grain = grain_for(run.extent * static_cast<std::int64_t>(sizeof(T)));
  parallel_for(volume(axes) * rows.extent, grain, [&](std::int64_t begin, std::int64_t end) {
    Odometer at(axes, begin / rows.extent);
    for (std::int64_t i = begin; i < end; at.next()) {
      const std::int64_t first = i % rows.extent;
      const std::int64_t count = std::min(rows.extent - first, end - i);
      copy_rows(from + at.from + first * rows.from, to + at.to + first * rows.to, rows, count, run);
      i += count;
    }
  });
}

template <class T>
void copy_axes(const T* from, T* to, std::vector<CopyAxis> axes);

// Blocks that the destination repeats, as Tile and Expand do, are made once and then copied as they are. True: done.
template <class T>
bool copy_repeated_blocks(const T* from, T* to, const std::vector<CopyAxis>& axes) {
  constexpr std::int64_t kLeastBytes = 512;
  std::int64_t dense = 1;  // elements of the destination that the axes behind cover without a gap
  for (std::size_t i = axes.size(); i-- > 0 && axes[i].to == dense; dense *= axes[i].extent) {
    const CopyAxis repeats = axes[i];
    if (repeats.from != 0 || dense * static_cast<std::int64_t>(sizeof(T)) < kLeastBytes) continue;
    std::vector<CopyAxis> once = axes;
    once.erase(once.begin() + static_cast<std::ptrdiff_t>(i));
    copy_axes(from, to, once);
    once.resize(i);
    const std::int64_t grain = grain_for(dense * static_cast<std::int64_t>(sizeof(T)) * repeats.extent);
    parallel_for(volume(once), grain, [&](std::int64_t begin, std::int64_t end) {
      Odometer at(once, begin);
      for (std::int64_t o = begin; o < end; ++o, at.next()) {
        for (std::int64_t k = 1; k < repeats.extent; ++k) copy_units(to + at.to, to + at.to + k * dense, dense);
      }
    });
    return true;
  }
  return false;
}

template <class T>
void copy_axes(const T* from, T* to, std::vector<CopyAxis> axes) {
  if (axes.empty()) {
    *to = *from;
    return;
  }
  if (copy_repeated_blocks(from, to, axes)) return;
  if (copy_few_ways(from, to, axes)) return;
  // Runs are dense in the destination where some axis is.
  const auto dense = std::find_if(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.to == 1; });
  if (dense != axes.end()) std::rotate(dense, dense + 1, axes.end());
  const CopyAxis run = axes.back();
  axes.pop_back();
  const auto unit = std::find_if(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.from == 1 && a.extent >= 4; });
  if (run.from > 1 && run.extent >= 4 && unit != axes.end()) {
    const CopyAxis rows = *unit;
    axes.erase(unit);
    return copy_transposed(from, to, axes, rows, run);
  }
  copy_runs(from, to, std::move(axes), run);
}

}  // namespace

void copy_strided(const Tensor& from, std::int64_t from_offset, Tensor& to, std::int64_t to_offset, std::vector<CopyAxis> axes) {
  for (const CopyAxis& a : axes) {
    if (a.extent == 0) return;
  }
  axes = collapsed(axes);
  dispatch_unit(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy_axes(static_cast<const T*>(from.data()) + from_offset, static_cast<T*>(to.mutable_data()) + to_offset, std::move(axes));
  });
}

}  // namespace sdx::ops
