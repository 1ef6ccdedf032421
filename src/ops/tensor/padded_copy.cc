// Rows go from stretch to stretch: each is one copy, turned or not, or one value over and over. Built with -O3, as
// strided_copy.cc.

#include "ops/tensor/padded_copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/image/row_source.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// Output positions [at, at + count) of an axis come from source positions that start at `source` and go by `step`, -1 to 1;
// source -1: they are filled.
struct Stretch {
  std::int64_t source;
  std::int64_t count;
  std::int64_t step;
};

std::int64_t remainder_of(std::int64_t i, std::int64_t period) {
  const std::int64_t r = i % period;
  return r < 0 ? r + period : r;
}

// The longest stretch that begins at output position `at`.
Stretch stretch_at(const PaddedAxis& a, Padding padding, std::int64_t at) {
  const std::int64_t i = at - a.before;
  if (i >= 0 && i < a.inside) return {a.first + i, a.inside - i, 1};
  const std::int64_t left = i < 0 ? std::min(-i, a.extent - at) : a.extent - at;  // of the padding
  if (padding == Padding::constant) return {-1, left, 0};
  if (padding == Padding::edge || a.inside == 1) return {a.first + (i < 0 ? 0 : a.inside - 1), left, 0};
  if (padding == Padding::wrap) {
    const std::int64_t r = remainder_of(i, a.inside);
    return {a.first + r, std::min(left, a.inside - r), 1};
  }
  const std::int64_t last = a.inside - 1, r = remainder_of(i, 2 * last);
  if (r < last) return {a.first + r, std::min(left, last - r), 1};
  return {a.first + 2 * last - r, std::min(left, 2 * last - r), -1};
}

template <class T>
void repeat_unit(const T* __restrict from, T* __restrict to, std::int64_t count, std::int64_t unit) {
  if (unit == 1) {
    std::fill_n(to, count, T(*from));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) copy_units(from, to + i * unit, unit);
}

template <class T>
void copy_turned(const T* __restrict from, T* __restrict to, std::int64_t count, std::int64_t unit) {
  if (unit == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[-i];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) copy_units(from - i * unit, to + i * unit, unit);
}

// Rows of so few elements go one by one, from a list of their sources.
constexpr std::int64_t kShortRow = 32;
// Rows of more stretches have them computed again each time: those of wide padding around few elements.
constexpr std::size_t kMostPieces = 8;

struct Piece {
  std::int64_t at;
  Stretch stretch;
};

// The data of one run of copy_padded(): `axes` without the innermost ones that are copied as they are, `unit` elements.
template <class T>
struct PaddedCopy {
  const T* in;
  T* out;
  std::vector<PaddedAxis> axes;
  Ints strides;
  std::int64_t unit;
  Padding padding;
  T fill;
  std::vector<Piece> pieces = {};  // of a row, where these are few
  Ints sources = {};               // of the elements of a short row

  const PaddedAxis& row() const { return axes.back(); }
};

template <class T>
void plan_row(PaddedCopy<T>& job) {
  const std::int64_t extent = job.row().extent;
  const bool is_short = extent * job.unit <= kShortRow;
  for (std::int64_t at = 0; at < extent && job.pieces.size() <= kMostPieces;) {
    job.pieces.push_back({at, stretch_at(job.row(), job.padding, at)});
    at += job.pieces.back().stretch.count;
  }
  if (job.pieces.size() > kMostPieces) job.pieces.clear();
  for (std::int64_t at = 0; is_short && at < extent; ++at) {
    const std::int64_t source = stretch_at(job.row(), job.padding, at).source;
    for (std::int64_t u = 0; u < job.unit; ++u) {
      job.sources.push_back(source < 0 ? -1 : source * job.unit + u);
    }
  }
}

template <class T>
void copy_stretch(const PaddedCopy<T>& job, const T* in, T* to, const Stretch& s, std::int64_t count) {
  if (s.source < 0) {
    std::fill_n(to, count * job.unit, job.fill);
  } else if (s.step > 0) {
    copy_units(in + s.source * job.unit, to, count * job.unit);
  } else if (s.step < 0) {
    copy_turned(in + s.source * job.unit, to, count, job.unit);
  } else {
    repeat_unit(in + s.source * job.unit, to, count, job.unit);
  }
}

// Copies positions [begin, end) of one row. `in` is the beginning of its source; null: the row is filled.
template <class T>
void copy_part(const PaddedCopy<T>& job, const T* in, T* out, std::int64_t begin, std::int64_t end) {
  if (in == nullptr) {
    std::fill_n(out + begin * job.unit, (end - begin) * job.unit, job.fill);
    return;
  }
  if (!job.sources.empty()) {
    for (std::int64_t i = begin * job.unit; i < end * job.unit; ++i) {
      const std::int64_t source = job.sources[static_cast<std::size_t>(i)];
      out[i] = source < 0 ? job.fill : in[source];
    }
    return;
  }
  if (!job.pieces.empty() && begin == 0 && end == job.row().extent) {
    for (const Piece& p : job.pieces) copy_stretch(job, in, out + p.at * job.unit, p.stretch, p.stretch.count);
    return;
  }
  for (std::int64_t at = begin; at < end;) {
    const Stretch s = stretch_at(job.row(), job.padding, at);
    const std::int64_t count = std::min(s.count, end - at);
    copy_stretch(job, in, out + at * job.unit, s, count);
    at += count;
  }
}

// Positions, of all rows one after the other, are what threads share: there may be one long row.
template <class T>
void copy_rows(const PaddedCopy<T>& job, std::int64_t rows) {
  const std::int64_t extent = job.row().extent;
  const std::int64_t grain = grain_for(job.unit * static_cast<std::int64_t>(sizeof(T)));
  parallel_for(rows * extent, grain, [&](std::int64_t begin, std::int64_t end) {
    const auto source_of = [&](const PaddedAxis& a, std::int64_t at) { return stretch_at(a, job.padding, at).source; };
    RowSource source(std::span(job.axes).first(job.axes.size() - 1), job.strides, source_of, begin / extent);
    for (std::int64_t i = begin, first = begin % extent; i < end; first = 0, source.next()) {
      const std::int64_t count = std::min(extent - first, end - i);
      const T* in = source.offset() < 0 ? nullptr : job.in + source.offset();
      copy_part(job, in, job.out + (i - first) * job.unit, first, first + count);
      i += count;
    }
  });
}

bool is_unchanged(const PaddedAxis& a, std::int64_t extent) {
  return a.before == 0 && a.first == 0 && a.inside == extent && a.extent == extent;
}

}  // namespace

void copy_padded(const Tensor& in, Tensor& out, const std::vector<PaddedAxis>& axes, Padding padding, const Tensor& fill) {
  if (out.size() == 0) return;
  std::size_t changed = axes.size();
  std::int64_t unit = 1;
  while (changed > 0 && is_unchanged(axes[changed - 1], in.dim(changed - 1))) unit *= in.dim(--changed);
  if (changed == 0) return copy_all(in, out);
  dispatch_unit(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    PaddedCopy<T> job{static_cast<const T*>(in.data()),
                      static_cast<T*>(out.mutable_data()),
                      {axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(changed)},
                      strides_of(in.shape()),
                      unit,
                      padding,
                      T{}};
    plan_row(job);
    if constexpr (std::is_same_v<T, std::string>) {
      job.fill = *static_cast<const T*>(fill.data());
    } else {
      std::memcpy(&job.fill, fill.data(), sizeof(T));
    }
    copy_rows(job, out.size() / (unit * job.row().extent));
  });
}

}  // namespace sdx::ops
