#include "ops/tensor/mapped_copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// Shorter runs than this are copied element by element.
constexpr std::int64_t kShortRun = 4;

// Output positions [at, at + count) of the innermost axis, taken from source positions that go up or down by one, or filled
// (source -1).
struct Run {
  std::int64_t at;
  std::int64_t source;
  std::int64_t count;
  std::int64_t step;
};

// How a row is made: long runs, and single elements.
struct RowPlan {
  std::vector<Run> runs;
  std::vector<Run> singles;  // count 1, source >= 0
  int repeats = 0;           // above 1: position i comes from i / repeats, all over the row
};

// 2 to 4 where the map repeats each position so often, as in enlarging by whole numbers; else 0.
int repeats_of(const Ints& map) {
  for (const int k : {2, 3, 4}) {
    if (map.size() < 16 || map.size() % static_cast<std::size_t>(k) != 0) continue;
    bool fits = true;
    for (std::size_t i = 0; fits && i < map.size(); ++i) fits = map[i] == static_cast<std::int64_t>(i) / k;
    if (fits) return k;
  }
  return 0;
}

RowPlan plan_row(const Ints& map, std::int64_t unit) {
  RowPlan plan;
  if (unit == 1) plan.repeats = repeats_of(map);
  for (std::size_t i = 0; i < map.size();) {
    const std::int64_t step =
        i + 1 < map.size() && map[i] >= 0 && map[i + 1] >= 0 && map[i + 1] == map[i] - 1 && unit == 1 ? -1 : 1;
    std::size_t end = i + 1;
    while (end < map.size() && (map[i] < 0 ? map[end] < 0 : map[end] >= 0 && map[end] == map[end - 1] + step)) ++end;
    const auto count = static_cast<std::int64_t>(end - i);
    const auto at = static_cast<std::int64_t>(i);
    if (map[i] < 0 || unit > 1 || count >= kShortRun) {
      plan.runs.push_back({at, std::max<std::int64_t>(-1, map[i]), count, step});
    } else {
      for (std::int64_t k = 0; k < count; ++k) plan.singles.push_back({at + k, map[i] + k * step, 1, 1});
    }
    i = end;
  }
  return plan;
}

bool is_identity(const Ints& map, std::int64_t extent) {
  if (static_cast<std::int64_t>(map.size()) != extent) return false;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

template <int kTimes, int kCount, class T>
void repeat_block(const T* __restrict in, T* __restrict out) {
  for (int i = 0; i < kCount; ++i) {
    for (int k = 0; k < kTimes; ++k) out[i * kTimes + k] = in[i];
  }
}

// Blocks of constant length, the last of which may overlap the one before: rows are often short.
template <int kTimes, class T>
void repeat_elements(const T* in, T* out, std::int64_t count) {
  constexpr int kBlock = sizeof(T) >= 16 ? 1 : static_cast<int>(16 / sizeof(T));
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) repeat_block<kTimes, kBlock>(in + i, out + i * kTimes);
  if (i < count && count >= kBlock) {
    i = count - kBlock;
    repeat_block<kTimes, kBlock>(in + i, out + i * kTimes);
    return;
  }
  for (; i < count; ++i) repeat_block<kTimes, 1>(in + i, out + i * kTimes);
}

template <class T>
void copy_turned(const T* __restrict in, T* __restrict out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[-i];
}

template <class T>
void copy_row(const T* __restrict in, T* __restrict out, const RowPlan& plan, std::int64_t extent, std::int64_t unit,
              const T& fill) {
  if (plan.repeats == 2) return repeat_elements<2>(in, out, extent / 2);
  if (plan.repeats == 3) return repeat_elements<3>(in, out, extent / 3);
  if (plan.repeats == 4) return repeat_elements<4>(in, out, extent / 4);
  for (const Run& r : plan.runs) {
    if (r.step < 0) {
      copy_turned(in + r.source, out + r.at, r.count);
    } else if (r.source >= 0) {
      copy_units(in + r.source * unit, out + r.at * unit, r.count * unit);
    } else if (r.count * unit < kShortRun) {
      for (std::int64_t i = 0; i < r.count * unit; ++i) out[r.at * unit + i] = fill;
    } else {
      std::fill_n(out + r.at * unit, r.count * unit, fill);
    }
  }
  for (const Run& r : plan.singles) out[r.at] = in[r.source];
}

// Where an output row comes from: an offset, or -1 for a row that is filled. Rows in order, without a division for each.
class RowSource {
 public:
  RowSource(const std::vector<Ints>& maps, std::size_t axes, const Ints& strides, std::int64_t row)
      : maps_(maps), strides_(strides), at_(axes), axes_(axes) {
    for (std::size_t d = axes; d-- > 0;) {
      const auto extent = static_cast<std::int64_t>(maps[d].size());
      at_[d] = row % extent;
      row /= extent;
    }
    settle();
  }
  std::int64_t offset() const { return offset_; }
  void next() {
    if (axes_ == 0) return;
    const std::size_t last = axes_ - 1;
    if (++at_[last] < static_cast<std::int64_t>(maps_[last].size())) return settle_last();
    at_[last] = 0;
    for (std::size_t d = last; d-- > 0;) {
      if (++at_[d] < static_cast<std::int64_t>(maps_[d].size())) break;
      at_[d] = 0;
    }
    settle();
  }

 private:
  void settle() {
    before_ = 0;
    for (std::size_t d = 0; d + 1 < axes_ && before_ >= 0; ++d) {
      const std::int64_t s = maps_[d][static_cast<std::size_t>(at_[d])];
      before_ = s < 0 ? -1 : before_ + s * strides_[d];
    }
    settle_last();
  }
  void settle_last() {
    const std::int64_t s = axes_ == 0 ? 0 : maps_[axes_ - 1][static_cast<std::size_t>(at_[axes_ - 1])];
    offset_ = before_ < 0 || s < 0 ? -1 : (axes_ == 0 ? 0 : before_ + s * strides_[axes_ - 1]);
  }

  const std::vector<Ints>& maps_;
  const Ints& strides_;
  Ints at_;
  std::size_t axes_;
  std::int64_t before_ = 0;  // offset of all axes but the last
  std::int64_t offset_ = 0;
};

template <class T>
void copy_rows(const T* in, T* out, std::int64_t total, const std::vector<Ints>& maps, std::size_t axes, const Ints& strides,
               std::int64_t unit, const T& fill) {
  const Ints& last = maps[axes - 1];
  const RowPlan plan = plan_row(last, unit);
  const auto extent = static_cast<std::int64_t>(last.size());
  const std::int64_t row = extent * unit;
  parallel_for(total / row, grain_for(row * static_cast<std::int64_t>(sizeof(T))), [&](std::int64_t begin, std::int64_t end) {
    RowSource source(maps, axes - 1, strides, begin);
    std::int64_t previous = -2;  // offset of the row before, or that of none
    for (std::int64_t r = begin; r < end; ++r, source.next()) {
      T* const to = out + r * row;
      const std::int64_t offset = source.offset();
      if (offset == previous) {
        copy_units(to - row, to, row);
      } else if (offset < 0) {
        std::fill_n(to, row, fill);
      } else {
        copy_row(in + offset, to, plan, extent, unit, fill);
      }
      previous = offset;
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
