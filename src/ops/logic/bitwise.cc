// BitShift (11, 28: signed types), BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot (18).

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_bits(InferContext& c) { infer_broadcast(c, 0, 2, c.dtype(0) != DataType::undefined ? c.dtype(0) : c.dtype(1)); }

bool shifts_left(const BitShiftAttrs& attr) {
  const std::string_view direction = attr.direction;
  if (direction != "LEFT" && direction != "RIGHT") {
    fail(ErrorCode::invalid_model, "attribute 'direction' is '{}'; permitted: LEFT, RIGHT", direction);
  }
  return direction == "LEFT";
}

void infer_shift(InferContext& c) {
  shifts_left(parse<BitShiftAttrs>(c));
  infer_bits(c);
}

// Shifting by the type's width or more, or by a negative number, leaves only what sign extension gives (BitShift-28).
template <class T>
T shift(T x, T by, bool left) {
  constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
  bool outside = by >= kBits;
  if constexpr (std::is_signed_v<T>) outside = outside || by < 0;
  if (outside) return !left && x < 0 ? static_cast<T>(-1) : T(0);
  using U = std::make_unsigned_t<T>;
  if (left) return static_cast<T>(static_cast<std::uint64_t>(static_cast<U>(x)) << by);
  return static_cast<T>(x >> by);
}

template <class F>
void run_ints(OpContext& c, F fn) {
  const Tensor& a = c.input(0);
  const Tensor& b = c.input(1);
  if (a.dtype() != b.dtype()) c.fail("both inputs must have one type, received {} and {}", a.type_string(), b.type_string());
  Tensor& out = c.output(0, a.dtype(), broadcast_shapes(a.shape(), b.shape()));
  dispatch(a.dtype(), IntTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    broadcast_binary<T, T, T>(a, b, out, fn);
  });
}

void run_shift(OpContext& c) {
  const bool left = shifts_left(parse<BitShiftAttrs>(c));
  run_ints(c, [left](auto x, auto by) { return shift(x, by, left); });
}

template <auto Fn>
void run_bitwise(OpContext& c) {
  run_ints(c, Fn);
}

void run_not(OpContext& c) {
  map_input(c, IntTypes{}, [](auto x) { return static_cast<decltype(x)>(~x); });
}

void add(OpTable& t, const char* name, RunFn run) {
  t.add(OpDef(name, 18).in("A B", "T", types::ints).out("C", "T", types::ints).infer_with(infer_bits).run_with(run));
}

}  // namespace

void register_bitwise(OpTable& t) {
  t.add(OpDef("BitShift", 11)
            .in("X Y", "T", types::ints)
            .out("Z", "T", types::ints)
            .attrs<BitShiftAttrs>()
            .infer_with(infer_shift)
            .run_with(run_shift));
  add(t, "BitwiseAnd", run_bitwise<[](auto a, auto b) { return static_cast<decltype(a)>(a & b); }>);
  add(t, "BitwiseOr", run_bitwise<[](auto a, auto b) { return static_cast<decltype(a)>(a | b); }>);
  add(t, "BitwiseXor", run_bitwise<[](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }>);
  t.add(OpDef("BitwiseNot", 18).in("X", "T", types::ints).out("Y", "T", types::ints).infer_with(infer_same).run_with(run_not));
}

}  // namespace sdx::ops
