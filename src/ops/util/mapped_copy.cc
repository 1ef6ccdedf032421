#include "ops/util/mapped_copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/util/axes.h"

namespace sdx::ops {
namespace {

// Output positions [at, at + count) of the innermost axis, taken from consecutive source positions, or filled (source -1).
struct Run {
  std::int64_t at;
  std::int64_t source;
  std::int64_t count;
};

std::vector<Run> runs_of(const Ints& map) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < map.size(); ++i) {
    const bool extends =
        !runs.empty() &&
        (map[i] < 0 ? runs.back().source < 0 : runs.back().source >= 0 && map[i] == runs.back().source + runs.back().count);
    if (extends) {
      ++runs.back().count;
    } else {
      runs.push_back({static_cast<std::int64_t>(i), map[i] < 0 ? -1 : map[i], 1});
    }
  }
  return runs;
}

bool is_identity(const Ints& map, std::int64_t extent) {
  if (static_cast<std::int64_t>(map.size()) != extent) return false;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

template <class T>
void copy_row(const T* in, T* out, const std::vector<Run>& runs, const Ints& map, std::int64_t unit, const T& fill) {
  if (unit == 1 && runs.size() * 4 > map.size()) {  // scattered, as in nearest resampling
    for (std::size_t i = 0; i < map.size(); ++i) out[i] = map[i] < 0 ? fill : in[map[i]];
    return;
  }
  for (const Run& r : runs) {
    if (r.source < 0) {
      std::fill_n(out + r.at * unit, r.count * unit, fill);
    } else {
      std::copy_n(in + r.source * unit, r.count * unit, out + r.at * unit);
    }
  }
}

template <class T>
void copy_rows(const T* in, T* out, std::int64_t total, const std::vector<Ints>& maps, std::size_t axes, const Ints& strides,
               std::int64_t unit, const T& fill) {
  const Ints& last = maps[axes - 1];
  const std::vector<Run> runs = runs_of(last);
  const std::int64_t row = static_cast<std::int64_t>(last.size()) * unit;
  parallel_for(total / row, grain_for(row * static_cast<std::int64_t>(sizeof(T))), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t offset = 0;
      bool outside = false;
      std::int64_t rest = r;
      for (std::size_t d = axes - 1; d-- > 0;) {
        const auto extent = static_cast<std::int64_t>(maps[d].size());
        const std::int64_t s = maps[d][static_cast<std::size_t>(rest % extent)];
        rest /= extent;
        outside = outside || s < 0;
        offset += s < 0 ? 0 : s * strides[d];
      }
      if (outside) {
        std::fill_n(out + r * row, row, fill);
      } else {
        copy_row(in + offset, out + r * row, runs, last, unit, fill);
      }
    }
  });
}

}  // namespace

void copy_mapped(const Tensor& in, Tensor& out, const std::vector<Ints>& maps, const Tensor& fill) {
  if (out.size() == 0) return;
  std::size_t axes = maps.size();
  std::int64_t unit = 1;  // elements of the innermost axes that are copied as they are
  while (axes > 0 && is_identity(maps[axes - 1], in.dim(axes - 1))) unit *= in.dim(--axes);
  if (axes == 0) return copy_all(in, out);
  const Ints strides = strides_of(in.shape());
  dispatch_unit(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value{};
    if constexpr (std::is_same_v<T, std::string>) {
      value = *static_cast<const T*>(fill.data());
    } else {
      std::memcpy(&value, fill.data(), sizeof(T));
    }
    copy_rows(static_cast<const T*>(in.data()), static_cast<T*>(out.mutable_data()), out.size(), maps, axes, strides, unit,
              value);
  });
}

}  // namespace sdx::ops
