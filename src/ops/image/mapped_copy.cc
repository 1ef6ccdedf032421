#include "ops/image/mapped_copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/image/row_source.h"
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

// The plan of a row: long runs, and single elements.
struct RowPlan {
  std::vector<Run> runs;
  std::vector<Run> singles;  // count 1, source >= 0
  int repeats = 0;           // above 1: position i comes from first + i / repeats, all over the row
  std::int64_t first = 0;
  std::int64_t extent = 0;
};

// Rows are planned in blocks of this many positions, a multiple of all `repeats`: a plan takes up to 40 bytes for each.
constexpr std::int64_t kBlock = 12 << 12;
// Axes of more positions have their sources computed for each row.
constexpr std::int64_t kMostListed = 1 << 14;

// 2 to 4 where the map repeats each position so often, as in enlarging by whole numbers; else 0.
int repeats_of(const Ints& map) {
  for (const int k : {2, 3, 4}) {
    if (map.size() < 16 || map.size() % static_cast<std::size_t>(k) != 0) continue;
    bool fits = map[0] >= 0;
    for (std::size_t i = 0; fits && i < map.size(); ++i) fits = map[i] == map[0] + static_cast<std::int64_t>(i) / k;
    if (fits) return k;
  }
  return 0;
}

RowPlan plan_row(const Ints& map, std::int64_t unit) {
  RowPlan plan;
  plan.extent = static_cast<std::int64_t>(map.size());
  plan.first = map[0];
  if (unit == 1) plan.repeats = repeats_of(map);
  if (plan.repeats != 0) return plan;
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

bool is_identity(const SourceOf& source, std::int64_t from, std::int64_t to) {
  if (from != to) return false;
  for (std::int64_t i = 0; source && i < to; ++i) {
    if (source(i) != i) return false;
  }
  return true;
}

Ints sources_of(const SourceOf& source, std::int64_t begin, std::int64_t end) {
  Ints list;
  list.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) list.push_back(source ? source(i) : i);
  return list;
}

// An axis around the rows.
class OuterAxis {
 public:
  OuterAxis(const SourceOf& source, std::int64_t axis_extent) : extent(axis_extent), source_(source) {
    if (source && extent <= kMostListed) list_ = sources_of(source, 0, extent);
  }
  std::int64_t source(std::int64_t i) const {
    if (!list_.empty()) return list_[static_cast<std::size_t>(i)];
    return source_ ? source_(i) : i;
  }
  std::int64_t extent;

 private:
  const SourceOf& source_;
  Ints list_;
};

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
void copy_row(const T* __restrict in, T* __restrict out, const RowPlan& plan, std::int64_t unit, const T& fill) {
  if (plan.repeats == 2) return repeat_elements<2>(in + plan.first, out, plan.extent / 2);
  if (plan.repeats == 3) return repeat_elements<3>(in + plan.first, out, plan.extent / 3);
  if (plan.repeats == 4) return repeat_elements<4>(in + plan.first, out, plan.extent / 4);
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

// The data of one run of copy_mapped(): rows of `extent` positions, each `unit` elements.
template <class T>
struct MappedCopy {
  const T* in;
  T* out;
  std::vector<OuterAxis> outer;
  const SourceOf& source;  // of the rows' positions
  Ints strides;
  std::int64_t rows, extent, unit;
  T fill;
};

// Rows [begin, end), as far as the plan goes, which starts at position `first` of each.
template <class T>
void copy_rows(const MappedCopy<T>& job, const RowPlan& plan, std::int64_t first, std::int64_t begin, std::int64_t end) {
  const std::int64_t row = job.extent * job.unit, count = plan.extent * job.unit;
  const auto source_of = [](const OuterAxis& axis, std::int64_t i) { return axis.source(i); };
  RowSource source(std::span<const OuterAxis>(job.outer), job.strides, source_of, begin);
  std::int64_t previous = -2;  // offset of the row before, or that of none
  for (std::int64_t r = begin; r < end; ++r, source.next()) {
    T* const to = job.out + r * row + first * job.unit;
    const std::int64_t offset = source.offset();
    if (offset == previous) {
      copy_units(to - row, to, count);
    } else if (offset < 0) {
      std::fill_n(to, count, job.fill);
    } else {
      copy_row(job.in + offset, to, plan, job.unit, job.fill);
    }
    previous = offset;
  }
}

template <class T>
void copy_all_rows(const MappedCopy<T>& job) {
  const auto plan_of = [&](std::int64_t first) {
    return plan_row(sources_of(job.source, first, std::min(job.extent, first + kBlock)), job.unit);
  };
  if (job.extent <= kBlock) {
    const RowPlan plan = plan_of(0);
    const std::int64_t bytes = job.extent * job.unit * static_cast<std::int64_t>(sizeof(T));
    return parallel_for(job.rows, grain_for(bytes),
                        [&](std::int64_t begin, std::int64_t end) { copy_rows(job, plan, 0, begin, end); });
  }
  parallel_for((job.extent + kBlock - 1) / kBlock, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) copy_rows(job, plan_of(b * kBlock), b * kBlock, 0, job.rows);
  });
}

}  // namespace

void copy_mapped(const Tensor& in, Tensor& out, const std::vector<SourceOf>& sources, const Tensor& fill) {
  if (out.size() == 0) return;
  std::size_t axes = sources.size();
  std::int64_t unit = 1;  // elements of the innermost axes that are copied as they are
  while (axes > 0 && is_identity(sources[axes - 1], in.dim(axes - 1), out.dim(axes - 1))) unit *= in.dim(--axes);
  if (axes == 0) return copy_all(in, out);
  std::vector<OuterAxis> outer;
  for (std::size_t d = 0; d + 1 < axes; ++d) outer.emplace_back(sources[d], out.dim(d));
  dispatch_unit(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t extent = out.dim(axes - 1);
    MappedCopy<T> job{static_cast<const T*>(in.data()),
                      static_cast<T*>(out.mutable_data()),
                      std::move(outer),
                      sources[axes - 1],
                      strides_of(in.shape()),
                      out.size() / (extent * unit),
                      extent,
                      unit,
                      T{}};
    if constexpr (std::is_same_v<T, std::string>) {
      job.fill = *static_cast<const T*>(fill.data());
    } else {
      std::memcpy(&job.fill, fill.data(), sizeof(T));
    }
    copy_all_rows(job);
  });
}

}  // namespace sdx::ops
