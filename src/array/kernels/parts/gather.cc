#include "array/kernels/parts/gather.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <type_traits>

#include "array/array_op.h"
#include "array/kernels/parts/update.h"
#include "base/thread_pool.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::array::detail {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t checked(ops::OpContext& c, std::int64_t at, std::int64_t extent, std::int64_t block) {
  const std::int64_t from = at < 0 ? at + extent : at;
  if (from < 0 || from > extent - block) {
    c.fail("position {} is out of range for an axis of {} elements{}", at, extent, block > 1 ? " and this slice size" : "");
  }
  return from;
}

// Where blocks begin, and how they lie: rows of `run` elements that are contiguous in array and block alike.
struct Blocks {
  Ints offsets;  // of each block in the array
  Ints rows;     // of each row within a block of the array
  std::int64_t run = 1;
  std::int64_t size() const { return run * static_cast<std::int64_t>(rows.size()); }
};

Blocks blocks_of(ops::OpContext& c, const Shape& whole, std::size_t first) {
  const Ints ints = c.attrs().get_ints("ints");
  const std::size_t count = ints.size() - whole.size();
  const Ints block(ints.begin() + static_cast<std::ptrdiff_t>(count), ints.end());
  const Ints strides = ops::strides_of(whole);
  Blocks b;
  b.offsets.assign(static_cast<std::size_t>(count == 0 ? 1 : c.input(first).size()), 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(ints[i]);
    const auto* at = c.data<std::int64_t>(first + i);
    for (std::size_t n = 0; n < b.offsets.size(); ++n) {
      b.offsets[n] += strides[axis] * checked(c, at[n], whole[axis], block[axis]);
    }
  }
  // The last axes that the block takes whole, and one before them, are contiguous.
  std::size_t outer = whole.size();
  while (outer > 0) {
    --outer;
    b.run *= block[outer];
    if (block[outer] != whole[outer]) break;
  }
  b.rows.assign(1, 0);
  for (std::size_t i = 0; i < outer; ++i) {
    Ints next;
    for (const std::int64_t row : b.rows) {
      for (std::int64_t k = 0; k < block[i]; ++k) next.push_back(row + k * strides[i]);
    }
    b.rows = std::move(next);
  }
  return b;
}

void run_gather(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const Tensor& in = c.input(0);
  const Blocks b = blocks_of(c, in.shape(), 1);
  if (out.size() == 0) return;
  ops::dispatch_unit(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(in.data());
    auto* to = static_cast<T*>(out.mutable_data());
    const auto size = static_cast<std::int64_t>(sizeof(T));
    parallel_for(static_cast<std::int64_t>(b.offsets.size()), ops::grain_for(b.size() * size),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t n = begin; n < end; ++n) {
                     T* at = to + n * b.size();
                     const T* base = from + b.offsets[static_cast<std::size_t>(n)];
                     for (const std::int64_t row : b.rows) {
                       if (b.run == 1) {
                         *at = base[row];
                       } else {
                         ops::copy_units(base + row, at, b.run);
                       }
                       at += b.run;
                     }
                   }
                 });
  });
}

// How much of each run of elements a thread takes at least, of so many runs.
std::int64_t scatter_grain(std::int64_t runs) {
  return std::max<std::int64_t>(64, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, runs));
}

// Updates that change what is there, of 16-bit floats: a place that many of them go to is rounded once, at the end.
bool accumulates(Update mode, Dtype dtype) {
  return (mode == Update::add || mode == Update::multiply) && (dtype == Dtype::float16 || dtype == Dtype::bfloat16);
}

// fn(T tag, function of two floats) for such an update.
template <class F>
void with_accumulation(Update mode, Dtype dtype, F&& fn) {
  const auto with_type = [&](auto tag) {
    if (mode == Update::add) return fn(tag, [](float a, float b) { return a + b; });
    return fn(tag, [](float a, float b) { return a * b; });
  };
  return dtype == Dtype::float16 ? with_type(std::type_identity<Float16>()) : with_type(std::type_identity<BFloat16>());
}

// Numbers in runs that go to one place, each run in its own order: run(first, last) for parts of `order`.
template <class Place, class Run>
void each_place(std::vector<std::int64_t>& order, Place&& place, Run&& run) {
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return place(a) < place(b); });
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](std::int64_t n) { return place(n) != place(*first); });
    run(std::span<const std::int64_t>(first, last));
    first = last;
  }
}

// Adds or multiplies blocks into `to`.
void scatter_halves(const Blocks& b, Update mode, const Tensor& updates, Tensor& out) {
  const auto blocks = static_cast<std::int64_t>(b.offsets.size()), rows = static_cast<std::int64_t>(b.rows.size());
  Ints order(b.offsets.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::vector<std::span<const std::int64_t>> places;
  each_place(
      order, [&](std::int64_t n) { return b.offsets[static_cast<std::size_t>(n)]; },
      [&](std::span<const std::int64_t> same) { places.push_back(same); });
  with_accumulation(mode, out.dtype(), [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(updates.data());
    auto* to = static_cast<T*>(out.mutable_data());
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> wide(static_cast<std::size_t>(end - begin));
      for (const std::span<const std::int64_t> same : places) {
        for (std::int64_t r = 0; r < rows; ++r) {
          T* at = to + b.offsets[static_cast<std::size_t>(same[0])] + b.rows[static_cast<std::size_t>(r)];
          for (std::int64_t i = begin; i < end; ++i) wide[static_cast<std::size_t>(i - begin)] = static_cast<float>(at[i]);
          for (const std::int64_t n : same) {
            const T* value = from + n * b.size() + r * b.run + begin;
            for (float& w : wide) w = update(w, static_cast<float>(*value++));
          }
          for (std::int64_t i = begin; i < end; ++i) at[i] = T(wide[static_cast<std::size_t>(i - begin)]);
        }
      }
    };
    parallel_for(b.run, scatter_grain(blocks * rows), part);
  });
}

// Where blocks are long, threads take parts of all of them; else one thread takes all: two may hit the same place.
void run_scatter(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Tensor& updates = c.input(1);
  const Blocks b = blocks_of(c, out.shape(), 2);
  if (updates.size() == 0) return;
  const auto mode = static_cast<Update>(c.attrs().get_int("mode"));
  if (accumulates(mode, out.dtype()) && b.offsets.size() > 1) return scatter_halves(b, mode, updates, out);
  with_update(mode, out.dtype(), "scatter", [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(updates.data());
    auto* to = static_cast<T*>(out.mutable_data());
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t n = 0; n < b.offsets.size(); ++n) {
        for (std::size_t r = 0; r < b.rows.size(); ++r) {
          T* at = to + b.offsets[n] + b.rows[r];
          const T* value = from + static_cast<std::int64_t>(n) * b.size() + static_cast<std::int64_t>(r) * b.run;
          for (std::int64_t i = begin; i < end; ++i) at[i] = update(at[i], value[i]);
        }
      }
    };
    parallel_for(b.run, scatter_grain(static_cast<std::int64_t>(b.offsets.size() * b.rows.size())), part);
  });
}

// Lines along an axis, each changed by one thread alone. slabs(fn): fn(which of the outer ones).
struct Lines {
  std::int64_t outer = 1, picks = 0, extent = 0, inner = 1;

  template <class F>
  void slabs(F&& fn) const {
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, picks * inner));
    parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) fn(o);
    });
  }
  // Line i of a slab: fn(its first position, its first element).
  template <class F>
  void each(F&& fn) const {
    slabs([&](std::int64_t o) {
      for (std::int64_t i = 0; i < inner; ++i) fn(o * picks * inner + i, o * extent * inner + i);
    });
  }
  std::int64_t inside(std::int64_t place) const { return place < 0 ? place + extent : place; }
};

void scatter_axis_halves(const Lines& lines, Update mode, const std::int64_t* at, const Tensor& updates, Tensor& out) {
  with_accumulation(mode, out.dtype(), [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(updates.data());
    auto* to = static_cast<T*>(out.mutable_data());
    lines.each([&](std::int64_t value, std::int64_t element) {
      const auto place = [&](std::int64_t p) { return lines.inside(at[value + p * lines.inner]); };
      Ints order(static_cast<std::size_t>(lines.picks));
      std::iota(order.begin(), order.end(), std::int64_t{0});
      each_place(order, place, [&](std::span<const std::int64_t> same) {
        T& there = to[element + place(same[0]) * lines.inner];
        auto wide = static_cast<float>(there);
        for (const std::int64_t p : same) wide = update(wide, static_cast<float>(from[value + p * lines.inner]));
        there = T(wide);
      });
    });
  });
}

void run_scatter_axis(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Tensor &updates = c.input(1), &positions = c.input(2);
  if (updates.size() == 0) return;
  const auto axis = static_cast<std::size_t>(c.attrs().get_int("axis"));
  const Lines lines{ops::product(out.shape(), 0, axis), positions.dim(axis), out.dim(axis),
                    ops::product(out.shape(), axis + 1, out.rank())};
  const auto* at = static_cast<const std::int64_t*>(positions.data());
  for (std::int64_t i = 0; i < positions.size(); ++i) checked(c, at[i], lines.extent, 1);
  const auto mode = static_cast<Update>(c.attrs().get_int("mode"));
  if (accumulates(mode, out.dtype()) && lines.picks > 1) return scatter_axis_halves(lines, mode, at, updates, out);
  with_update(mode, out.dtype(), "put_along_axis", [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(updates.data());
    auto* to = static_cast<T*>(out.mutable_data());
    lines.slabs([&](std::int64_t o) {
      for (std::int64_t p = 0; p < lines.picks; ++p) {
        for (std::int64_t i = 0; i < lines.inner; ++i) {
          const std::int64_t n = (o * lines.picks + p) * lines.inner + i;
          T& element = to[(o * lines.extent + lines.inside(at[n])) * lines.inner + i];
          element = update(element, from[n]);
        }
      }
    });
  });
}

}  // namespace

const ArrayOp& gather_op() {
  static const ArrayOp op = array_op("Gather", run_gather);
  return op;
}
const ArrayOp& scatter_op() {
  static const ArrayOp op = updating_op("Scatter", run_scatter);
  return op;
}
const ArrayOp& scatter_axis_op() {
  static const ArrayOp op = updating_op("ScatterAxis", run_scatter_axis);
  return op;
}

}  // namespace sdx::array::detail
