// Functions of one and two variables in float32.

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/conv/blocked/blocked_channels.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"

#include <algorithm>

#include "providers/cpu/activation.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/unary_kernel.h"

namespace sdx::cpu {
namespace {

using UnaryKernel = UnaryF32<UnarySpec, unary_f32>;

std::unique_ptr<Kernel> make_unary(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const auto spec = unary_of(c);
  if (!spec) return c.refuse("parameters are not constant");
  return std::make_unique<UnaryKernel>("unary-f32", *spec);
}

constexpr int kMaxRank = 8;

struct BroadcastState : KernelState {
  enum class Form { same, right_scalar, left_scalar, channels, general } form = Form::general;
  int rank = 0;
  bool channels_left = false;  // the left operand is the one with a value per channel
  std::int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank];
};

std::int64_t count(const Shape& s) { return element_count(s); }

// Tells whether b is one value for each channel of blocked channels: [N, K, H, W, c] and [N, K, 1, 1, c] (ops/conv/blocked.cc).
bool per_channel(const Shape& a, const Shape& b) {
  return a.size() == 5 && b.size() == 5 && b[2] == 1 && b[3] == 1 && a[0] == b[0] && a[1] == b[1] && a[4] == b[4] &&
         a[4] == channel_block();
}

std::unique_ptr<BroadcastState> plan_broadcast(Binary op, const Shape& a, const Shape& b, const Shape& out) {
  check_broadcast(a, out);
  check_broadcast(b, out);
  auto state = std::make_unique<BroadcastState>();
  using Form = BroadcastState::Form;
  if (a == b && count(a) == count(out)) {
    state->form = Form::same;
  } else if (count(b) == 1 && count(a) == count(out)) {
    state->form = Form::right_scalar;
  } else if (count(a) == 1 && count(b) == count(out)) {
    state->form = Form::left_scalar;
  } else if ((op == Binary::mul || op == Binary::add) && (per_channel(a, b) || per_channel(b, a))) {
    state->form = Form::channels;
    state->channels_left = per_channel(b, a);
    state->dims[0] = out[0] * out[1];
    state->dims[1] = out[2] * out[3];
  } else {
    state->rank = static_cast<int>(out.size());
    std::copy(out.begin(), out.end(), state->dims);
    broadcast_steps(a, out, state->a);
    broadcast_steps(b, out, state->b);
  }
  return state;
}

class BinaryKernel : public Kernel {
 public:
  BinaryKernel(Binary op, int in_place) : op_(op), in_place_(in_place) {}
  std::string_view name() const override { return "binary-f32"; }
  int in_place() const override { return in_place_; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    return plan_broadcast(op_, c.input_shape(0), c.input_shape(1), c.output_shape(0));
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const BroadcastState*>(c.state);
    const float *a = c.in<float>(0), *b = c.in<float>(1);
    auto* y = c.out<float>(0);
    const std::int64_t n = c.output(0).size();
    if (n == 0) return;
    switch (s.form) {
      case BroadcastState::Form::same: return binary_f32(op_, a, b, y, n);
      case BroadcastState::Form::right_scalar: return binary_scalar_right_f32(op_, a, *b, y, n);
      case BroadcastState::Form::left_scalar: return binary_scalar_left_f32(op_, *a, b, y, n);
      case BroadcastState::Form::channels: {
        const float *x = s.channels_left ? b : a, *per = s.channels_left ? a : b;
        const std::int64_t images = std::max<std::int64_t>(1, c.output(0).shape()[0]);
        const bool whole = s.dims[0] % images == 0;
        return (op_ == Binary::mul ? scale_channels_f32 : shift_channels_f32)(
            whole ? images : 1, whole ? s.dims[0] / images : s.dims[0], s.dims[1], x, per, y);
      }
      case BroadcastState::Form::general: return binary_broadcast_f32(op_, a, b, y, s.rank, s.dims, s.a, s.b);
    }
  }

 private:
  Binary op_;
  int in_place_;
};

template <Binary Op>
std::unique_ptr<Kernel> make_binary(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  if (c.node().inputs.size() != 2) return c.refuse("not two inputs");
  if (c.node().domain.empty() && c.node().version < 7 && Op != Binary::min && Op != Binary::max && c.node().op_type != "Sum")
    return c.refuse("broadcasting rules of opsets before 7");
  const SymShape *a = c.shape(0), *b = c.shape(1);
  if (a == nullptr || b == nullptr || a->size() > kMaxRank || b->size() > kMaxRank) return c.refuse("rank unknown or above 8");
  // The output may overwrite the larger operand: the planner checks that both have the same size.
  const bool right = c.constant(0) != nullptr || b->size() > a->size();
  return std::make_unique<BinaryKernel>(Op, right ? 1 : 0);
}

}  // namespace

void register_kernels_elementwise(KernelTable& t) {
  for (const char* op : {"Relu",        "Sigmoid", "Tanh",       "Softplus", "Exp",
                         "Log",         "Sqrt",    "Reciprocal", "Abs",      "Neg",
                         "Erf",         "Floor",   "Ceil",       "Round",    "Sign",
                         "Softsign",    "Mish",    "HardSwish",  "Clip",     "LeakyRelu",
                         "HardSigmoid", "Elu",     "Selu",       "Celu",     "ThresholdedRelu",
                         "Shrink",      "Swish",   "Gelu"}) {
    t.add("", op, "unary-f32", 10, make_unary);
  }
  for (const char* op : {"QuickGelu", "Gelu", "FastGelu"}) t.add("com.microsoft", op, "unary-f32", 10, make_unary);
  t.add("", "Add", "binary-f32", 10, make_binary<Binary::add>);
  t.add("", "Sub", "binary-f32", 10, make_binary<Binary::sub>);
  t.add("", "Mul", "binary-f32", 10, make_binary<Binary::mul>);
  t.add("", "Div", "binary-f32", 10, make_binary<Binary::div>);
  t.add("", "Pow", "binary-f32", 10, make_binary<Binary::pow>);
  t.add("", "Min", "binary-f32", 10, make_binary<Binary::min>);
  t.add("", "Max", "binary-f32", 10, make_binary<Binary::max>);
  t.add("", "Sum", "binary-f32", 10, make_binary<Binary::add>);
  t.add("", "PRelu", "binary-f32", 10, make_binary<Binary::prelu>);
  t.add("com.microsoft", "ReluGrad", "binary-f32", 10, make_binary<Binary::relu_grad>);
}

}  // namespace sdx::cpu
