// Equal (1, 7, 11, 13, 19), Less and Greater (1, 7, 9, 13), LessOrEqual and GreaterOrEqual (12, 16).

#include <algorithm>
#include <functional>
#include <string>

#include "ops/math/broadcast.h"
#include "ops/math/legacy_broadcast.h"
#include "ops/math/signatures.h"
#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using OrderedTypes = NumericTypes;
using EqualTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                            std::uint16_t, std::uint32_t, std::uint64_t, bool, std::string>;

// A plain symbol is the extent of some axis, so it is never negative; expressions may be.
bool is_extent(const Dim& d) {
  const std::string name = d.symbol_name();
  return !name.empty() && name.find('(') == std::string::npos;
}

// 1, 0 or unknown.
Dim equal(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(a.value() == b.value() ? 1 : 0);
  if (a == b) return Dim(1);
  if ((is_extent(a) && b.is_const() && b.value() < 0) || (is_extent(b) && a.is_const() && a.value() < 0)) return Dim(0);
  return Dim::unknown();
}

void infer_compare(InferContext& c) { infer_binary(c, DataType::boolean); }

// The elements of Equal are known more often than its inputs: PyTorch's export of expand() compares a shape with -1.
void infer_equal(InferContext& c) {
  infer_compare(c);
  const auto* a = c.sym(0);
  const auto* b = c.sym(1);
  if (a == nullptr || b == nullptr || a->empty() || b->empty()) return;
  const std::size_t n = std::max(a->size(), b->size());
  if ((a->size() != n && a->size() != 1) || (b->size() != n && b->size() != 1)) return;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(equal((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  c.output_sym(0, std::move(out));
}

template <class List, class Op>
void run_compare(OpContext& c) {
  const Tensor& a = c.input(0);
  const Tensor b = legacy_operand(c);
  Tensor& out = c.output(0, DataType::boolean, broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), List{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, bool>(a, b, out, [](const T& x, const T& y) {
      if constexpr (is_reduced_float_v<T>) {
        return Op{}(static_cast<float>(x), static_cast<float>(y));
      } else {
        return Op{}(x, y);
      }
    });
  });
}

void add(OpTable& t, const char* name, int since, TypeSet set, InferFn infer, RunFn run) {
  t.add(OpDef(name, since)
            .in("A B", "T", set)
            .out("C", "T1", types::boolean)
            .attrs<LegacyBroadcastAttrs>()
            .infer_with(infer)
            .run_with(run));
}

}  // namespace

void register_compare(OpTable& t) {
  const TypeSet equal_types = types::numeric | types::boolean | types::string;
  add(t, "Equal", 1, equal_types, infer_equal, run_compare<EqualTypes, std::equal_to<>>);
  add(t, "Less", 1, types::numeric, infer_compare, run_compare<OrderedTypes, std::less<>>);
  add(t, "Greater", 1, types::numeric, infer_compare, run_compare<OrderedTypes, std::greater<>>);
  add(t, "LessOrEqual", 12, types::numeric, infer_compare, run_compare<OrderedTypes, std::less_equal<>>);
  add(t, "GreaterOrEqual", 12, types::numeric, infer_compare, run_compare<OrderedTypes, std::greater_equal<>>);
}

}  // namespace sdx::ops
