// Where: ai.onnx 9, 16. Elements are moved by size: no arithmetic is done on them.

#include <algorithm>
#include <array>
#include <string>

#include "base/thread_pool.h"
#include "ops/math/broadcast.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

// Runs of fewer elements stay on one thread.
constexpr std::int64_t kParallelRun = 1 << 15;

const Dim* pick(const std::vector<Dim>& v, std::size_t i, std::size_t n) {
  if (v.size() == n) return &v[i];
  return v.size() == 1 ? v.data() : nullptr;
}

void infer_where(InferContext& c) {
  infer_broadcast(c, 0, 3, c.dtype(1) != DataType::undefined ? c.dtype(1) : c.dtype(2));
  const Tensor* condition = c.value(0);
  const auto* flags = c.sym(0);
  const auto* x = c.sym(1);
  const auto* y = c.sym(2);
  if (x == nullptr || y == nullptr) return;
  std::vector<Dim> from_value;
  if (flags == nullptr && condition != nullptr && condition->dtype() == DataType::boolean && condition->rank() <= 1 &&
      condition->size() <= 1024) {
    for (const bool b : condition->values<bool>()) from_value.emplace_back(b ? 1 : 0);
    flags = &from_value;
  }
  if (flags == nullptr) return;
  const std::size_t n = std::max({flags->size(), x->size(), y->size()});
  std::vector<Dim> out;
  for (std::size_t i = 0; i < n; ++i) {
    const Dim* f = pick(*flags, i, n);
    const Dim* a = pick(*x, i, n);
    const Dim* b = pick(*y, i, n);
    if (f == nullptr || a == nullptr || b == nullptr) return;
    if (f->is_const()) {
      out.push_back(f->value() != 0 ? *a : *b);
    } else {
      out.push_back(*a == *b ? *a : Dim::unknown());
    }
  }
  c.output_sym(0, std::move(out));
}

// Both sides are read whatever the condition is, a mask selects, and steps are constants, so that the compiler vectorises it. A
// branch on a random condition costs 5 ns an element.
template <int kStepX, int kStepY, class T>
void select_run(const bool* __restrict c, const T* __restrict x, const T* __restrict y, T* __restrict out, std::int64_t n) {
  const auto* flags = reinterpret_cast<const std::uint8_t*>(c);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto mask = static_cast<T>(T{0} - static_cast<T>(flags[i] != 0));
    const T b = y[i * kStepY];
    out[i] = static_cast<T>(b ^ ((x[i * kStepX] ^ b) & mask));
  }
}

template <class T>
void select_run(const bool* c, const std::array<std::int64_t, 3>& step, const T* x, const T* y, T* out, std::int64_t n) {
  if (step[0] == 0) {  // all from one side
    const T* from = *c ? x : y;
    if (step[*c ? 1 : 2] == 0) {
      std::fill_n(out, n, *from);
    } else {
      copy_units(from, out, n);
    }
  } else if constexpr (!std::is_integral_v<T>) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = c[i] ? x[i * step[1]] : y[i * step[2]];
  } else if (step[1] == 1 && step[2] == 1) {
    select_run<1, 1>(c, x, y, out, n);
  } else if (step[1] == 1) {
    select_run<1, 0>(c, x, y, out, n);
  } else if (step[2] == 1) {
    select_run<0, 1>(c, x, y, out, n);
  } else {
    select_run<0, 0>(c, x, y, out, n);
  }
}

template <class T>
void select(const Tensor& condition, const Tensor& x, const Tensor& y, Tensor& out) {
  const auto* pc = static_cast<const bool*>(condition.data());
  const auto* px = static_cast<const T*>(x.data());
  const auto* py = static_cast<const T*>(y.data());
  auto* po = static_cast<T*>(out.mutable_data());
  for_each_broadcast<3>({condition.shape(), x.shape(), y.shape()}, out.shape(),
                        [&](const auto& at, const auto& step, std::int64_t o, std::int64_t n) {
                          const auto part = [&](std::int64_t b, std::int64_t e) {
                            select_run(pc + at[0] + b * step[0], step, px + at[1] + b * step[1], py + at[2] + b * step[2],
                                       po + o + b, e - b);
                          };
                          if (n < kParallelRun) return part(0, n);
                          parallel_for(n, kParallelRun, part);
                        });
}

void run_where(OpContext& c) {
  const Tensor& condition = c.input(0);
  const Tensor& x = c.input(1);
  const Tensor& y = c.input(2);
  if (condition.dtype() != DataType::boolean || x.dtype() != y.dtype()) {
    c.fail("the condition must be bool and X and Y of one type; received {}, {} and {}", condition.type_string(), x.type_string(),
           y.type_string());
  }
  Tensor& out = c.output(0, x.dtype(), broadcast_shapes(broadcast_shapes(condition.shape(), x.shape()), y.shape()));
  if (x.dtype() == DataType::string) return select<std::string>(condition, x, y, out);
  switch (bit_width(x.dtype())) {
    case 8: return select<std::uint8_t>(condition, x, y, out);
    case 16: return select<std::uint16_t>(condition, x, y, out);
    case 32: return select<std::uint32_t>(condition, x, y, out);
    case 64: return select<std::uint64_t>(condition, x, y, out);
    case 128: return select<Unit16>(condition, x, y, out);
    default: fail(ErrorCode::not_implemented, "Where has no kernel for element type {}", name(x.dtype()));
  }
}

}  // namespace

void register_where(OpTable& t) {
  const TypeSet set = types::numeric | types::boolean | types::string | types::complex | types::float8;
  t.add(OpDef("Where", 9)
            .in("condition", "B", types::boolean)
            .in("X Y", "T", set)
            .out("output", "T", set)
            .infer_with(infer_where)
            .run_with(run_where));
}

}  // namespace sdx::ops
