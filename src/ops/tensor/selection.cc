// NonZero: ai.onnx 9, 13. Compress: ai.onnx 9, 11, 28.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/util/axes.h"
#include "ops/util/movement.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using Testable = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                          std::uint16_t, std::uint32_t, std::uint64_t, bool, std::string>;

template <class T>
bool is_set(const T& v) {
  if constexpr (std::is_same_v<T, std::string>) {
    return !v.empty();
  } else {
    return static_cast<ComputeType<T>>(v) != ComputeType<T>(0);
  }
}

void infer_non_zero(InferContext& c) {
  const SymShape* in = c.shape(0);
  c.output(0, DataType::int64, SymShape{in != nullptr ? Dim(static_cast<std::int64_t>(in->size())) : Dim(), Dim()});
}

// Source: ONNX NonZero-13: one column per element found, in row-major order; a scalar gives shape (0, N).
void run_non_zero(OpContext& c) {
  const Tensor& in = c.input(0);
  Ints found;
  dispatch(in.dtype(), Testable{}, "NonZero", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* p = static_cast<const T*>(in.data());
    for (std::int64_t i = 0; i < in.size(); ++i) {
      if (is_set(p[i])) found.push_back(i);
    }
  });
  const auto n = static_cast<std::int64_t>(found.size());
  Tensor& out = c.output(0, DataType::int64, {static_cast<std::int64_t>(in.rank()), n});
  auto* to = static_cast<std::int64_t*>(out.mutable_data());
  for (std::size_t d = in.rank(); d-- > 0;) {
    std::int64_t* row = to + static_cast<std::int64_t>(d) * n;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t& rest = found[static_cast<std::size_t>(i)];
      row[i] = rest % in.dim(d);
      rest /= in.dim(d);
    }
  }
}

void infer_compress(InferContext& c) {
  if (!c.attrs().has("axis")) return c.output(0, c.dtype(0), SymShape{Dim()});
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  SymShape out = *in;
  Dim& extent = out[static_cast<std::size_t>(normalize_axis(c.attrs().get_int("axis"), in->size()))];
  extent = Dim::unknown();
  c.output(0, c.dtype(0), std::move(out));
}

void run_compress(OpContext& c) {
  Tensor in = widened(c.input(0));
  const Tensor& condition = c.input(1);
  if (condition.rank() != 1) c.fail("'condition' must be of rank 1, received {}", condition.type_string());
  const bool flat = !c.attrs().has("axis");
  if (flat) in = in.reshaped({in.size()});
  const auto axis = flat ? std::size_t{0} : static_cast<std::size_t>(normalize_axis(c.attrs().get_int("axis"), in.rank()));
  Ints picked;
  const auto keep = condition.values<bool>();
  for (std::int64_t i = 0; i < std::min(condition.size(), in.dim(axis)); ++i) {
    if (keep[static_cast<std::size_t>(i)]) picked.push_back(i);
  }
  Shape shape = in.shape();
  shape[axis] = static_cast<std::int64_t>(picked.size());
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    const std::int64_t outer = product(shape, 0, axis);
    const std::int64_t inner = product(shape, axis + 1, shape.size());
    const std::int64_t from_block = in.dim(axis) * inner;
    const std::int64_t to_block = shape[axis] * inner;
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(in.data());
      auto* to = static_cast<T*>(out.mutable_data());
      for (std::int64_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < picked.size(); ++i) {
          std::copy_n(from + o * from_block + picked[i] * inner, inner, to + o * to_block + static_cast<std::int64_t>(i) * inner);
        }
      }
    });
  });
}

}  // namespace

void register_selection(OpTable& t) {
  t.add(OpDef("NonZero", 9)
            .in("X", "T", types::any_tensor)
            .out("Y", "", types::int64)
            .infer_with(infer_non_zero)
            .run_with(run_non_zero));
  t.add(OpDef("Compress", 9)
            .in("input", "T", types::any_tensor)
            .in("condition", "T1", types::boolean)
            .out("output", "T", types::any_tensor)
            .attr("axis", AttrKind::i)
            .infer_with(infer_compress)
            .run_with(run_compress));
}

}  // namespace sdx::ops
