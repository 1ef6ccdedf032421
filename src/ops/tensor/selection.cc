// NonZero: ai.onnx 9, 13. Compress: ai.onnx 9, 11, 28.

#include <algorithm>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct CompressAttrs {
  std::optional<std::int64_t> axis;

  void fields(auto& f) { f("axis", axis); }
};

// Element types by the bits that are clear in a zero: all but the sign in floats, all in the others.
constexpr TypeSet kFloats = types::floats;

// Calls fn(const T* elements, mask): an element is not zero if any bit of the mask is set in it.
template <class F>
void dispatch_bits(const Tensor& t, F&& fn) {
  const bool is_float = (bit(t.dtype()) & kFloats) != 0;
  const auto call = [&](auto zero) {
    using T = decltype(zero);
    const auto all = static_cast<T>(~T{0});
    fn(static_cast<const T*>(t.data()), is_float ? static_cast<T>(all >> 1) : all);
  };
  switch (bit_width(t.dtype())) {
    case 8: return call(std::uint8_t{});
    case 16: return call(std::uint16_t{});
    case 32: return call(std::uint32_t{});
    default: return call(std::uint64_t{});
  }
}

// The positions i < n for which set(i), in order. They are counted first, so that the second loop needs no branch on the data.
template <class F>
Ints positions_of(std::int64_t n, F&& set) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += set(i) ? 1 : 0;
  Ints found(static_cast<std::size_t>(count));
  std::int64_t* to = found.data();
  std::int64_t* const end = to + count;
  for (std::int64_t i = 0; to != end; ++i) {
    *to = i;
    to += set(i) ? 1 : 0;
  }
  return found;
}

Ints non_zero_positions(const Tensor& t) {
  if (t.dtype() == DataType::string) {
    const auto* p = static_cast<const std::string*>(t.data());
    return positions_of(t.size(), [&](std::int64_t i) { return !p[i].empty(); });
  }
  constexpr TypeSet testable = types::numeric | types::boolean;
  if ((bit(t.dtype()) & testable) == 0)
    fail(ErrorCode::not_implemented, "NonZero has no kernel for element type {}", name(t.dtype()));
  Ints found;
  dispatch_bits(
      t, [&](const auto* p, auto mask) { found = positions_of(t.size(), [=](std::int64_t i) { return (p[i] & mask) != 0; }); });
  return found;
}

void infer_non_zero(InferContext& c) {
  const SymShape* in = c.shape(0);
  c.output(0, DataType::int64, SymShape{in != nullptr ? Dim(static_cast<std::int64_t>(in->size())) : Dim(), Dim()});
}

// Splits off the last coordinate of each position, along an axis of this extent; the remaining positions lack that axis.
// Positions ascend, so most lie in the row of the one before, which saves the division.
void split_off(Ints& positions, std::int64_t extent, std::int64_t* last) {
  std::int64_t row = 0, begin = 0;
  for (std::int64_t& p : positions) {
    if (p - begin >= extent) {
      row = p / extent;
      begin = row * extent;
    }
    *last++ = p - begin;
    p = row;
  }
}

// Source: ONNX NonZero-13: one column per element found, in row-major order; a scalar gives shape (0, N).
void run_non_zero(OpContext& c) {
  const Tensor& in = c.input(0);
  Ints found = non_zero_positions(in);
  const auto n = static_cast<std::int64_t>(found.size());
  Tensor& out = c.output(0, DataType::int64, {static_cast<std::int64_t>(in.rank()), n});
  auto* to = static_cast<std::int64_t*>(out.mutable_data());
  for (std::size_t d = in.rank(); d-- > 0;) {
    std::int64_t* row = to + static_cast<std::int64_t>(d) * n;
    if (d == 0) {
      std::copy(found.begin(), found.end(), row);
    } else {
      split_off(found, in.dim(d), row);
    }
  }
}

void infer_compress(InferContext& c) {
  const auto attr = parse<CompressAttrs>(c);
  if (!attr.axis.has_value()) return c.output(0, c.dtype(0), SymShape{Dim()});
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  SymShape out = *in;
  Dim& extent = out[static_cast<std::size_t>(normalize_axis(*attr.axis, in->size()))];
  extent = Dim::unknown();
  c.output(0, c.dtype(0), std::move(out));
}

void run_compress(OpContext& c) {
  const auto attr = parse<CompressAttrs>(c);
  Tensor in = widened(c.input(0));
  const Tensor& condition = c.input(1);
  const bool flat = !attr.axis.has_value();
  if (flat) in = in.reshaped({in.size()});
  const auto axis = flat ? std::size_t{0} : static_cast<std::size_t>(normalize_axis(*attr.axis, in.rank()));
  const auto* keep = condition.values<bool>().data();
  const Ints picked = positions_of(std::min(condition.size(), in.dim(axis)), [=](std::int64_t i) { return keep[i]; });
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
      for (std::int64_t o = 0; o < outer; ++o, from += from_block, to += to_block) {
        T* next = to;
        if (inner == 1) {
          for (const std::int64_t i : picked) *next++ = from[i];
        } else {
          for (const std::int64_t i : picked) {
            copy_units(from + i * inner, next, inner);
            next += inner;
          }
        }
      }
    });
  });
}

}  // namespace

void register_selection(OpTable& t) {
  OpDef non_zero("NonZero", 9);
  non_zero.in("X", "T", types::any_tensor).out("Y", "", types::int64);
  t.add(std::move(non_zero).infer_with(infer_non_zero).run_with(run_non_zero));
  OpDef compress("Compress", 9);
  compress.in("input", "T", types::any_tensor).in("condition", "T1", types::boolean).out("output", "T", types::any_tensor);
  compress.attrs<CompressAttrs>();
  t.add(std::move(compress).infer_with(infer_compress).run_with(run_compress));
}

}  // namespace sdx::ops
