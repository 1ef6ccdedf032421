#include "ops/util/movement.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "tensor/types.h"

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

template <class T>
void copy_run(const T* from, T* to, const CopyAxis& run) {
  if (run.to == 1 && run.from == 1) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(to, from, static_cast<std::size_t>(run.extent) * sizeof(T));
    } else {
      std::copy_n(from, run.extent, to);
    }
  } else if (run.to == 1 && run.from == 0) {
    std::fill_n(to, run.extent, *from);
  } else {
    for (std::int64_t i = 0; i < run.extent; ++i) to[i * run.to] = from[i * run.from];
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

template <class T>
void copy_axes(const T* from, T* to, std::vector<CopyAxis> axes) {
  if (axes.empty()) {
    *to = *from;
    return;
  }
  const CopyAxis run = axes.back();
  axes.pop_back();
  const auto unit = std::find_if(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.from == 1 && a.extent >= 4; });
  if (run.from > 1 && run.extent >= 4 && unit != axes.end()) {
    const CopyAxis rows = *unit;
    axes.erase(unit);
    return copy_transposed(from, to, axes, rows, run);
  }
  if (axes.empty() && run.from == 1 && run.to == 1) {  // one long run
    return parallel_for(run.extent, grain_for(sizeof(T)), [&](std::int64_t begin, std::int64_t end) {
      copy_run(from + begin, to + begin, CopyAxis{end - begin, 1, 1});
    });
  }
  const std::int64_t grain = grain_for(run.extent * static_cast<std::int64_t>(sizeof(T)));
  parallel_for(volume(axes), grain, [&](std::int64_t begin, std::int64_t end) {
    Odometer at(axes, begin);
    for (std::int64_t i = begin; i < end; ++i, at.next()) copy_run(from + at.from, to + at.to, run);
  });
}

}  // namespace

std::int64_t grain_for(std::int64_t bytes_per_item) {
  return std::max<std::int64_t>(1, kMoveGrainBytes / std::max<std::int64_t>(1, bytes_per_item));
}

Tensor widened(const Tensor& t) {
  if (!is_sub_byte(t.dtype())) return t;
  const int bits = bit_width(t.dtype());
  Tensor codes(DataType::uint8, t.shape());
  auto* p = static_cast<std::uint8_t*>(codes.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) p[i] = get_packed(t.data(), bits, i);
  return codes;
}

void narrow(const Tensor& codes, Tensor& packed) {
  const int bits = bit_width(packed.dtype());
  const auto* p = static_cast<const std::uint8_t*>(codes.data());
  void* out = packed.mutable_data();
  if (packed.bytes() != 0) std::memset(out, 0, packed.bytes());
  for (std::int64_t i = 0; i < codes.size(); ++i) set_packed(out, bits, i, p[i]);
}

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

void copy_all(const Tensor& from, Tensor& to) {
  SDX_ASSERT(from.dtype() == to.dtype() && from.size() == to.size());
  if (from.size() == 0) return;
  if (from.dtype() == DataType::string) {
    std::copy_n(static_cast<const std::string*>(from.data()), from.size(), static_cast<std::string*>(to.mutable_data()));
    return;
  }
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to.mutable_data());
  parallel_for(static_cast<std::int64_t>(from.bytes()), 4 * kMoveGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

void fill_with(Tensor& to, const Tensor& value) {
  if (to.size() == 0) return;
  if (is_sub_byte(to.dtype())) {
    const int bits = bit_width(to.dtype());
    const std::uint8_t code = get_packed(value.data(), bits, 0);
    std::uint8_t byte = 0;
    for (int i = 0; i < 8 / bits; ++i) set_packed(&byte, bits, i, code);
    std::memset(to.mutable_data(), byte, to.bytes());
    return;
  }
  dispatch_unit(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T unit{};
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(&unit, value.data(), sizeof(T));  // attributes may be unaligned
    } else {
      unit = *static_cast<const T*>(value.data());
    }
    std::fill_n(static_cast<T*>(to.mutable_data()), to.size(), unit);
  });
}

void fill_zero(Tensor& to) {
  if (to.dtype() == DataType::string) {
    std::fill_n(static_cast<std::string*>(to.mutable_data()), to.size(), std::string());
  } else if (to.bytes() != 0) {
    std::memset(to.mutable_data(), 0, to.bytes());
  }
}

}  // namespace sdx::ops
