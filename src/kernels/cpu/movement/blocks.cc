#include "kernels/cpu/movement/blocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "base/copy_bytes.h"
#include "base/thread_pool.h"
#include "kernels/cpu/movement/update.h"
#include "tensor/halves.h"

namespace sdx::cpu {
namespace {

// Copies rows. The size of an element is known at compile time, so rows of one element take one instruction.
template <int kBytes>
void gather_parts(const Blocks& b, const std::byte* x, std::byte* y) {
  const std::int64_t block = b.size() * kBytes;
  parallel_for(static_cast<std::int64_t>(b.offsets.size()), std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, block)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t n = begin; n < end; ++n) {
                   std::byte* to = y + n * block;
                   const std::byte* from = x + b.offsets[static_cast<std::size_t>(n)] * kBytes;
                   for (const std::int64_t row : b.rows) {
                     if (b.run == 1) {
                       std::memcpy(to, from + row * kBytes, kBytes);
                     } else {
                       copy_bytes(to, from + row * kBytes, static_cast<std::size_t>(b.run) * kBytes);
                     }
                     to += b.run * kBytes;
                   }
                 }
               });
}

// Returns the shortest part of each of `runs` runs of elements that is worth a thread.
std::int64_t scatter_grain(std::int64_t runs) {
  return std::max<std::int64_t>(64, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, runs));
}

// Tells whether an update combines with existing 16-bit floats: a place that several updates change is rounded once, at the end.
bool accumulates(UpdateFn fn, DataType type) { return (fn == UpdateFn::add || fn == UpdateFn::multiply) && is_half(type); }

// Calls f(Tag, function of two floats) for such an update.
template <class F>
void with_accumulation(UpdateFn fn, DataType type, F&& f) {
  const auto halves = [&](auto tag) {
    if (fn == UpdateFn::add) return f(tag, [](float a, float b) { return a + b; });
    return f(tag, [](float a, float b) { return a * b; });
  };
  return type == DataType::float16 ? halves(Tag<Float16>()) : halves(Tag<BFloat16>());
}

// Sorts updates by the place to which they go, in their own order within a place, and calls run(part of `order`) for each place.
template <class Place, class Run>
void each_place(std::vector<std::int64_t>& order, Place&& place, Run&& run) {
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return place(a) < place(b); });
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](std::int64_t n) { return place(n) != place(*first); });
    run(std::span<const std::int64_t>(first, last));
    first = last;
  }
}

// Adds blocks to `to`, or multiplies it by them.
void scatter_halves(UpdateFn fn, DataType type, const Blocks& b, const void* x, void* y) {
  const auto blocks = static_cast<std::int64_t>(b.offsets.size()), rows = static_cast<std::int64_t>(b.rows.size());
  std::vector<std::int64_t> order(b.offsets.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::vector<std::span<const std::int64_t>> places;
  each_place(
      order, [&](std::int64_t n) { return b.offsets[static_cast<std::size_t>(n)]; },
      [&](std::span<const std::int64_t> same) { places.push_back(same); });
  with_accumulation(fn, type, [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
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

// Lines of which each is changed by one thread only. slabs(fn) calls fn with each outer position.
struct Lines : PickedLines {
  template <class F>
  void slabs(F&& fn) const {
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, picks * inner));
    parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) fn(o);
    });
  }
  // Calls fn(first position, first element) for each line of a slab.
  template <class F>
  void each(F&& fn) const {
    slabs([&](std::int64_t o) {
      for (std::int64_t i = 0; i < inner; ++i) fn(o * picks * inner + i, o * extent * inner + i);
    });
  }
  std::int64_t inside(std::int64_t place) const { return place < 0 ? place + extent : place; }
};

void scatter_halves(UpdateFn fn, DataType type, const Lines& lines, const std::int64_t* at, const void* x, void* y) {
  with_accumulation(fn, type, [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    lines.each([&](std::int64_t value, std::int64_t element) {
      const auto place = [&](std::int64_t p) { return lines.inside(at[value + p * lines.inner]); };
      std::vector<std::int64_t> order(static_cast<std::size_t>(lines.picks));
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

}  // namespace

void gather_blocks(int bytes, const Blocks& b, const void* x, void* y) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  switch (bytes) {
    case 1: return gather_parts<1>(b, from, to);
    case 2: return gather_parts<2>(b, from, to);
    case 4: return gather_parts<4>(b, from, to);
    case 8: return gather_parts<8>(b, from, to);
    default: return gather_parts<16>(b, from, to);
  }
}

// Threads take parts of all blocks if blocks are long. Otherwise one thread takes all, because two blocks may go to the same
// place.
void scatter_blocks(UpdateFn fn, DataType type, const Blocks& b, const void* x, void* y) {
  if (accumulates(fn, type) && b.offsets.size() > 1) return scatter_halves(fn, type, b, x, y);
  with_update(fn, type, [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
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

void scatter_lines(UpdateFn fn, DataType type, const PickedLines& picked, const std::int64_t* at, const void* x, void* y) {
  const Lines lines{picked};
  if (accumulates(fn, type) && lines.picks > 1) return scatter_halves(fn, type, lines, at, x, y);
  with_update(fn, type, [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
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

void add_strided_to(DataType type, const void* x, void* y, const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& y_strides) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  const std::int64_t inner = dims.empty() ? 1 : dims.back(), step = dims.empty() ? 0 : y_strides.back();
  with_update(UpdateFn::add, type, [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(x);
    for (std::int64_t row = 0; row < rows; ++row, from += inner) {
      auto* to = static_cast<T*>(y);
      std::int64_t rest = row;
      for (std::size_t i = dims.size(); i-- > 1;) {
        to += rest % dims[i - 1] * y_strides[i - 1];
        rest /= dims[i - 1];
      }
      for (std::int64_t i = 0; i < inner; ++i, to += step) *to = update(*to, from[i]);
    }
  });
}

}  // namespace sdx::cpu
