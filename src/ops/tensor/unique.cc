// Unique: ai.onnx 11, 28; com.microsoft 1 (unsorted, three outputs).

#include <algorithm>
#include <numeric>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/signatures.h"
#include "tensor/dispatch.h"
#include "tensor/radix_sort.h"
#include "tensor/sort_keys.h"

namespace sdx::ops {
namespace {

using Sortable =
    TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
             std::uint32_t, std::uint64_t, bool, std::string, std::complex<float>, std::complex<double>>;

// -1, 0, 1. NaN is the largest number and equal to itself: as numpy sorts.
template <class T>
int compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const int real = compare(a.real(), b.real());
    return real != 0 ? real : compare(a.imag(), b.imag());
  } else if constexpr (std::is_same_v<T, std::string>) {
    const int r = a.compare(b);
    return r < 0 ? -1 : (r > 0 ? 1 : 0);
  } else {
    const auto x = static_cast<ComputeType<T>>(a);
    const auto y = static_cast<ComputeType<T>>(b);
    if (x < y) return -1;
    if (y < x) return 1;
    if (x == y) return 0;
    const bool nx = x != x;
    const bool ny = y != y;
    return nx == ny ? 0 : (nx ? 1 : -1);
  }
}

struct Groups {
  Ints first;    // input row where each unique row occurs first
  Ints inverse;  // for each input row: its unique row
  Ints counts;
};

// Adds the next input row in ascending order, equal ones as they come.
void add_row(Groups& g, std::int64_t row, bool equals_last) {
  if (!equals_last) {
    g.first.push_back(row);
    g.counts.push_back(0);
  }
  ++g.counts.back();
  g.inverse[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(g.first.size()) - 1;
}

// Rows of one element. Both zeros are equal.
template <class T>
Groups group_elements(const T* data, std::int64_t n) {
  using Item = Placed<SortKey<T>>;
  std::vector<Item> items(static_cast<std::size_t>(2 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = data[i];
    const bool zero = static_cast<ComputeType<T>>(x) == ComputeType<T>(0);
    items[static_cast<std::size_t>(i)] = {sort_key(zero ? T() : x), static_cast<std::uint32_t>(i)};
  }
  radix_sort(items.data(), items.data() + n, n, true);
  Groups g;
  g.inverse.resize(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < g.inverse.size(); ++i) add_row(g, items[i].place, i > 0 && items[i].key == items[i - 1].key);
  return g;
}

// Rows [0, n) of `row` elements each.
template <class T>
Groups group_rows(const T* data, std::int64_t n, std::int64_t row) {
  if constexpr (std::is_arithmetic_v<ComputeType<T>>) {
    if (row == 1 && n <= UINT32_MAX) return group_elements(data, n);
  }
  const auto compare_rows = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = 0; i < row; ++i) {
      const int r = compare<T>(data[a * row + i], data[b * row + i]);
      if (r != 0) return r;
    }
    return 0;
  };
  Ints order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return compare_rows(a, b) < 0; });
  Groups g;
  g.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) add_row(g, order[i], i > 0 && compare_rows(order[i - 1], order[i]) == 0);
  return g;
}

// Ascending groups in order of first occurrence.
Groups by_occurrence(const Groups& g) {
  Groups moved;
  Ints place(g.first.size(), -1);
  for (const std::int64_t u : g.inverse) {
    std::int64_t& at = place[static_cast<std::size_t>(u)];
    if (at < 0) {
      at = static_cast<std::int64_t>(moved.first.size());
      moved.first.push_back(g.first[static_cast<std::size_t>(u)]);
      moved.counts.push_back(g.counts[static_cast<std::size_t>(u)]);
    }
    moved.inverse.push_back(at);
  }
  return moved;
}

void infer_unique(InferContext& c) {
  const auto attr = parse<UniqueAttrs>(c);
  const SymShape* in = c.shape(0);
  if (!attr.axis.has_value()) {
    c.output(0, c.dtype(0), SymShape{Dim()});
  } else if (in != nullptr) {
    SymShape out = *in;
    Dim& extent = out[static_cast<std::size_t>(normalize_axis(*attr.axis, in->size()))];
    extent = Dim::unknown();
    c.output(0, c.dtype(0), std::move(out));
  } else {
    c.output(0, c.dtype(0));
  }
  for (std::size_t i = 1; i < c.num_outputs(); ++i) c.output(i, DataType::int64, SymShape{Dim()});
}

void put(OpContext& c, std::size_t i, const Ints& values) {
  if (!c.wants_output(i)) return;
  Tensor& out = c.output(i, DataType::int64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.mutable_values<std::int64_t>().begin());
}

// Codes of integers below a byte, ordered as their values are: the sign's bit is turned over.
std::uint8_t sign_of(DataType type) { return type == DataType::int4 ? 8 : (type == DataType::int2 ? 2 : 0); }
void turn_signs(Tensor& codes, DataType type) {
  const std::uint8_t sign = sign_of(type);
  for (std::uint8_t& code : codes.mutable_values<std::uint8_t>()) code ^= sign;
}
Tensor sortable(const Tensor& t) {
  if (!is_sub_byte(t.dtype())) return t;
  if (t.dtype() == DataType::float4e2m1) fail(ErrorCode::not_implemented, "Unique of {} is not supported", t.type_string());
  Tensor codes(DataType::uint8, t.shape());
  copy_all(widened(t), codes);
  turn_signs(codes, t.dtype());
  return codes;
}

// Rows of `row` elements.
void copy_rows(const Tensor& in, const Ints& rows, std::int64_t row, Tensor& out) {
  dispatch_unit(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(in.data());
    auto* to = static_cast<T*>(out.mutable_data());
    for (const std::int64_t i : rows) {
      copy_units(from + i * row, to, row);
      to += row;
    }
  });
}

// `in` is sortable().
Groups unique_along(OpContext& c, const Tensor& in, std::size_t axis, bool sorted) {
  const std::int64_t outer = product(in.shape(), 0, axis);
  const std::int64_t inner = product(in.shape(), axis + 1, in.rank());
  const std::int64_t n = in.dim(axis);
  Tensor rows(in.dtype(), Shape{n, outer, inner});
  copy_strided(in, 0, rows, 0, {{n, inner, outer * inner}, {outer, n * inner, inner}, {inner, 1, 1}});
  Groups g;
  dispatch(in.dtype(), Sortable{}, "Unique", [&](auto tag) {
    using T = typename decltype(tag)::type;
    g = group_rows(static_cast<const T*>(rows.data()), n, outer * inner);
  });
  if (!sorted) g = by_occurrence(g);
  Shape shape = in.shape();
  shape[axis] = static_cast<std::int64_t>(g.first.size());
  const DataType type = c.input(0).dtype();
  produce(c, 0, type, shape, [&](Tensor& out) {
    if (outer == 1) {
      copy_rows(in, g.first, inner, out);
    } else {
      for (std::size_t u = 0; u < g.first.size(); ++u) {
        const auto at = static_cast<std::int64_t>(u);
        copy_strided(in, g.first[u] * inner, out, at * inner, {{outer, n * inner, shape[axis] * inner}, {inner, 1, 1}});
      }
    }
    if (is_sub_byte(type)) turn_signs(out, type);
  });
  return g;
}

Groups unique_of(OpContext& c, bool sorted) {
  const auto attr = parse<UniqueAttrs>(c);
  const Tensor in = sortable(c.input(0));
  if (!attr.axis.has_value()) return unique_along(c, in.reshaped({in.size()}), 0, sorted);
  return unique_along(c, in, static_cast<std::size_t>(normalize_axis(*attr.axis, in.rank())), sorted);
}

void run_unique(OpContext& c) {
  const Groups g = unique_of(c, parse<UniqueAttrs>(c).sorted);
  put(c, 1, g.first);
  put(c, 2, g.inverse);
  put(c, 3, g.counts);
}

void run_microsoft_unique(OpContext& c) {
  const Groups g = unique_of(c, false);
  put(c, 1, g.inverse);
  put(c, 2, g.counts);
}

}  // namespace

void register_unique(OpTable& t) {
  t.add(OpDef("Unique", 11)
            .in("X", "T", types::any_tensor)
            .out("Y", "T", types::any_tensor)
            .out("indices inverse_indices counts", "", types::int64, Arity::optional)
            .attrs<UniqueAttrs>()
            .infer_with(infer_unique)
            .run_with(run_unique));
  t.add(OpDef("com.microsoft", "Unique", 1)
            .in("x", "T", types::any_tensor)
            .out("y", "T", types::any_tensor)
            .out("idx counts", "", types::int64)
            .infer_with(infer_unique)
            .run_with(run_microsoft_unique));
}

}  // namespace sdx::ops
