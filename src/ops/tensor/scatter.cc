// Scatter: ai.onnx 9. ScatterElements: ai.onnx 11, 13, 16 (reduction), 18 (min, max). ScatterND: ai.onnx 11, 13, 16, 18.
// TensorScatter: ai.onnx 24.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/signatures.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"
#include "tensor/halves.h"

namespace sdx::ops {
namespace {

enum class Reduction { none, add, mul, min, max };

Reduction reduction_of(const ScatterAttrs& attr) {
  const std::string_view r = attr.reduction;
  if (r == "none") return Reduction::none;
  if (r == "add") return Reduction::add;
  if (r == "mul") return Reduction::mul;
  if (r == "min") return Reduction::min;
  if (r == "max") return Reduction::max;
  fail(ErrorCode::invalid_model, "'reduction' must be none, add, mul, min or max; received {}", r);
}

// Integers wrap around: they compute in unsigned arithmetic of at least 32 bits.
template <class T>
T reduce(T a, T b, Reduction r) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    switch (r) {
      case Reduction::add: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case Reduction::mul: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
      case Reduction::min: return std::min(a, b);
      case Reduction::max: return std::max(a, b);
      case Reduction::none: return b;
    }
  } else {
    using C = ComputeType<T>;
    const auto x = static_cast<C>(a);
    const auto y = static_cast<C>(b);
    switch (r) {
      case Reduction::add: return T(x + y);
      case Reduction::mul: return T(x * y);
      // Without a branch: data in no order would mispredict every other one.
      case Reduction::min: return ((y < x) | (y != y)) ? b : a;
      case Reduction::max: return ((y > x) | (y != y)) ? b : a;
      case Reduction::none: return b;
    }
  }
  return b;
}

void infer_scatter(InferContext& c) {
  const auto attr = parse<ScatterAttrs>(c);
  reduction_of(attr);
  if (const SymShape* data = c.shape(0)) {
    if (c.node().op_type != "ScatterND") normalize_axis(attr.axis, data->size());
    return c.output(0, c.dtype(0), *data);
  }
  c.output(0, c.dtype(0));
}

// Calls fn(T* out, const T* updates): by size without reduction, by type with one. 16-bit floats are reduced in float32, and
// rounded at the end: one element may take any number of updates. `out` holds the data.
template <class F>
void with_typed(OpContext& c, Reduction reduction, Tensor& out, const Tensor& updates, F&& fn) {
  if (reduction != Reduction::none && is_half(out.dtype())) {
    const FloatInput<float> from(updates);
    FloatOutput<float> to(out);
    load_floats(out, to.data());
    fn(to.data(), from.data());
    return to.store();
  }
  const auto call = [&](auto tag) {
    using T = typename decltype(tag)::type;
    fn(static_cast<T*>(out.mutable_data()), static_cast<const T*>(updates.data()));
  };
  if (reduction == Reduction::none) {
    dispatch_unit(out.dtype(), call);
  } else {
    dispatch(out.dtype(), NumericTypes{}, c.node().op_type + " with a reduction", call);
  }
}

template <class T>
void store(T& at, const T& update, Reduction reduction) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Unit16>) {
    at = update;
  } else {
    at = reduce(at, update, reduction);
  }
}

// A run of updates: the reduction is a constant in each loop, so that the compiler vectorises.
template <class T>
void store_run(T* to, const T* from, std::int64_t count, Reduction reduction) {
  const auto run = [&](auto constant) {
    for (std::int64_t i = 0; i < count; ++i) store(to[i], from[i], decltype(constant)::value);
  };
  switch (reduction) {
    case Reduction::none: return copy_units(from, to, count);
    case Reduction::add: return run(std::integral_constant<Reduction, Reduction::add>{});
    case Reduction::mul: return run(std::integral_constant<Reduction, Reduction::mul>{});
    case Reduction::min: return run(std::integral_constant<Reduction, Reduction::min>{});
    case Reduction::max: return run(std::integral_constant<Reduction, Reduction::max>{});
  }
}

// Columns that threads share: at least a cache line of floats, so that two do not write the same one.
std::int64_t column_grain(std::int64_t bytes_per_column) { return std::max<std::int64_t>(16, grain_for(bytes_per_column)); }

// Updates of different entries of an axis other than `axis` never meet, so threads share such entries: those of the first axis,
// or columns.
template <class Index, class F>
void scatter_elements(const ElementRows& rows, const Shape& indices, std::size_t axis, const Index* at, F&& put) {
  constexpr std::int64_t kBytes = 16;  // of an index and an update
  const std::int64_t outer = axis == 0 ? 1 : indices[0];
  if (outer > 1 || rows.step() == 0) {
    const std::int64_t each = rows.rows() / outer;
    return parallel_for(outer, grain_for(each * rows.run() * kBytes), [&](std::int64_t begin, std::int64_t end) {
      for_each_element_index(rows, at, begin * each, end * each, put);
    });
  }
  parallel_for(rows.run(), column_grain(rows.rows() * kBytes), [&](std::int64_t left, std::int64_t right) {
    for_each_element_index(rows, at, 0, rows.rows(), left, right, put);
  });
}

void run_scatter_elements(OpContext& c) {
  const auto attr = parse<ScatterAttrs>(c);
  const Reduction reduction = reduction_of(attr);
  const Tensor data = widened(c.input(0));
  const Tensor& indices = c.input(1);
  const Tensor updates = widened(c.input(2));
  if (updates.shape() != indices.shape() || updates.dtype() != data.dtype()) {
    c.fail("updates {} must have the shape of the indices {} and the type of the data {}", updates.type_string(),
           indices.type_string(), data.type_string());
  }
  if (reduction != Reduction::none && is_sub_byte(c.input(0).dtype())) c.fail("no reduction on {}", name(c.input(0).dtype()));
  const auto axis = static_cast<std::size_t>(normalize_axis(attr.axis, data.rank()));
  check_element_indices(data.shape(), indices.shape(), axis);
  check_index_type(indices);
  produce(c, 0, c.input(0).dtype(), data.shape(), [&](Tensor& out) {
    copy_all(data, out);
    if (indices.size() == 0) return;
    const ElementRows rows(data.shape(), indices.shape(), axis);
    with_typed(c, reduction, out, updates, [&](auto* to, const auto* from) {
      dispatch_index(indices, [&](const auto* at) {
        if (reduction == Reduction::none) {
          scatter_elements(rows, indices.shape(), axis, at, [=](std::int64_t i, std::int64_t offset) { to[offset] = from[i]; });
        } else {
          scatter_elements(rows, indices.shape(), axis, at,
                           [=](std::int64_t i, std::int64_t offset) { store(to[offset], from[i], reduction); });
        }
      });
    });
  });
}

void run_scatter_nd(OpContext& c) {
  const Reduction reduction = reduction_of(parse<ScatterAttrs>(c));
  const Tensor data = widened(c.input(0));
  const Tensor& indices = c.input(1);
  const Tensor updates = widened(c.input(2));
  const Shape expected = scatter_nd_updates(data.shape(), indices.shape());
  if (updates.shape() != expected || updates.dtype() != data.dtype()) {
    c.fail("updates must be {}{}, received {}", name(data.dtype()), to_string(expected), updates.type_string());
  }
  if (reduction != Reduction::none && is_sub_byte(c.input(0).dtype())) c.fail("no reduction on {}", name(c.input(0).dtype()));
  produce(c, 0, c.input(0).dtype(), data.shape(), [&](Tensor& out) {
    copy_all(data, out);
    if (updates.size() == 0) return;
    const NdOffsets offsets(data.shape(), indices, 0);
    with_typed(c, reduction, out, updates, [&](auto* to, const auto* from) {
      const std::int64_t run = offsets.run();
      const auto grain = column_grain(offsets.count() * 2 * static_cast<std::int64_t>(sizeof(*to)));
      parallel_for(run, grain, [&](std::int64_t left, std::int64_t right) {
        for (std::int64_t i = 0; i < offsets.count(); ++i) {
          store_run(to + offsets.at(i) + left, from + i * run + left, right - left, reduction);
        }
      });
    });
  });
}

struct TensorScatterAttrs {
  std::int64_t axis = -2;
  std::string_view mode = "linear";

  void fields(auto& f) {
    f("axis", axis);
    f("mode", mode);
  }
};

std::size_t sequence_axis(const TensorScatterAttrs& attr, std::size_t rank) {
  const std::int64_t axis = normalize_axis(attr.axis, rank);
  if (axis == 0) fail(ErrorCode::invalid_model, "'axis' cannot be the batch axis 0");
  return static_cast<std::size_t>(axis);
}

bool is_circular(const TensorScatterAttrs& attr) {
  const std::string_view mode = attr.mode;
  if (mode != "linear" && mode != "circular") {
    fail(ErrorCode::invalid_model, "'mode' must be linear or circular, received {}", mode);
  }
  return mode == "circular";
}

void infer_tensor_scatter(InferContext& c) {
  is_circular(parse<TensorScatterAttrs>(c));
  if (const SymShape* cache = c.shape(0)) {
    sequence_axis(parse<TensorScatterAttrs>(c), cache->size());
    return c.output(0, c.dtype(0), *cache);
  }
  c.output(0, c.dtype(0));
}

void run_tensor_scatter(OpContext& c) {
  const Tensor cache = widened(c.input(0));
  const Tensor update = widened(c.input(1));
  const std::size_t axis = sequence_axis(parse<TensorScatterAttrs>(c), cache.rank());
  const bool circular = is_circular(parse<TensorScatterAttrs>(c));
  bool fits = update.rank() == cache.rank();
  for (std::size_t d = 0; fits && d < cache.rank(); ++d) {
    fits = d == axis ? update.dim(d) <= cache.dim(d) : update.dim(d) == cache.dim(d);
  }
  if (!fits) c.fail("update {} does not fit into the cache {}", update.type_string(), cache.type_string());
  Ints starts(static_cast<std::size_t>(cache.dim(0)), 0);
  if (c.has_input(2)) starts = to_ints(c.input(2));
  if (static_cast<std::int64_t>(starts.size()) != cache.dim(0)) {
    c.fail("'write_indices' must hold {} numbers, received {}", cache.dim(0), starts.size());
  }
  const std::int64_t capacity = cache.dim(axis);
  const std::int64_t length = update.dim(axis);
  for (std::int64_t& s : starts) {
    if (s < 0 || (!circular && s > capacity - length)) c.fail("write index {} is out of range for extent {}", s, capacity);
    if (capacity > 0) s %= std::max<std::int64_t>(1, circular ? capacity : INT64_MAX);
  }
  produce(c, 0, c.input(0).dtype(), cache.shape(), [&](Tensor& out) {
    copy_all(cache, out);
    if (update.size() == 0) return;
    const std::int64_t inner = product(cache.shape(), axis + 1, cache.rank());
    const std::int64_t middle = product(cache.shape(), 1, axis);
    for (std::int64_t b = 0; b < cache.dim(0); ++b) {
      const std::int64_t start = starts[static_cast<std::size_t>(b)];
      const std::int64_t head = std::min(length, capacity - start);
      const std::int64_t from = b * middle * length * inner;
      const std::int64_t to = b * middle * capacity * inner;
      const CopyAxis outer{middle, length * inner, capacity * inner};
      copy_strided(update, from, out, to + start * inner, {outer, {head * inner, 1, 1}});
      copy_strided(update, from + head * inner, out, to, {outer, {(length - head) * inner, 1, 1}});
    }
  });
}

OpDef scatter(const char* name, int since, TypeSet indices) {
  OpDef def(name, since);
  def.in("data", "T", types::any_tensor)
      .in("indices", "Tind", indices)
      .in("updates", "T", types::any_tensor)
      .out("output", "T", types::any_tensor);
  return def;
}

}  // namespace

void register_scatter(OpTable& t) {
  OpDef old = scatter("Scatter", 9, types::indices).attrs<ScatterAttrs>();
  old.deprecated_at = 11;
  t.add(std::move(old).infer_with(infer_scatter).run_with(run_scatter_elements));
  t.add(scatter("ScatterElements", 11, types::indices)
            .attrs<ScatterAttrs>()
            .infer_with(infer_scatter)
            .run_with(run_scatter_elements));
  t.add(scatter("ScatterND", 11, types::int64).attrs<ScatterAttrs>().infer_with(infer_scatter).run_with(run_scatter_nd));
  t.add(OpDef("TensorScatter", 24)
            .in("past_cache update", "T", types::any_tensor)
            .in("write_indices", "", types::int64, Arity::optional)
            .out("present_cache", "T", types::any_tensor)
            .attrs<TensorScatterAttrs>()
            .infer_with(infer_tensor_scatter)
            .run_with(run_tensor_scatter));
}

}  // namespace sdx::ops
