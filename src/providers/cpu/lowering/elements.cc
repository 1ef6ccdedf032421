// Functions of one, two and several elements for all types of numbers. Kernels for float32 alone are asked first.

#include "kernels/cpu/elements/elementwise.h"

#include <optional>

#include "kernels/cpu/elements/activations.h"
#include "kernels/cpu/elements/halves.h"
#include "ops/math/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

bool known_rank(const LowerContext& c, std::size_t i) {
  const SymShape* s = c.shape(i);
  return s != nullptr && s->size() <= static_cast<std::size_t>(kMaxBroadcastRank);
}

template <int N>
struct RowsState : KernelState {
  RowPlan<N> plan;
};

// --- functions of two elements

// How the error message names a division by 0, if the operator refuses it.
enum class Zero : std::uint8_t { permitted, division, modulo };

struct PairSpec {
  BinaryFn fn = BinaryFn::add;
  bool swapped = false;  // the operator's first input is the function's second operand
  Zero zero = Zero::permitted;
};

class PairKernel : public Kernel {
 public:
  PairKernel(PairSpec spec, DataType type) : spec_(spec), type_(type), first_(spec.swapped ? 1 : 0) {}
  std::string_view name() const override { return "pair-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<RowsState<2>>();
    state->plan = plan_rows<2>({c.input_shape(first_), c.input_shape(1 - first_)}, c.output_shape(0));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& plan = static_cast<const RowsState<2>*>(c.state)->plan;
    if (plan.inner == 0) return;
    if (spec_.zero != Zero::permitted && has_zero(type_, c.input(1).data(), c.input(1).size())) {
      fail(ErrorCode::runtime_failure, "integer {} by zero", spec_.zero == Zero::division ? "division" : "modulo");
    }
    apply(spec_.fn, type_, plan, c.input(first_).data(), c.input(1 - first_).data(), c.output(0).mutable_data());
  }

 private:
  PairSpec spec_;
  DataType type_;
  std::size_t first_;
};

std::unique_ptr<Kernel> make_pair_of(LowerContext& c, PairSpec spec) {
  if (c.node().inputs.size() != 2 || !c.has_input(0) || !c.has_input(1)) return c.refuse("not two inputs");
  if (c.dtype(0) != c.dtype(1)) return c.refuse("inputs of two types");
  if (!supports(spec.fn, c.dtype(0))) return c.refuse("not of a type that it knows");
  if (c.node().version < 7) return c.refuse("broadcasting rules of opsets before 7");
  if (!known_rank(c, 0) || !known_rank(c, 1)) return c.refuse("rank unknown or above 8");
  return std::make_unique<PairKernel>(spec, c.dtype(0));
}

template <BinaryFn kFn, bool kSwapped = false>
std::unique_ptr<Kernel> make_pair(LowerContext& c) {
  return make_pair_of(c, {kFn, kSwapped, Zero::permitted});
}

std::unique_ptr<Kernel> make_div(LowerContext& c) {
  if (is_integer(c.dtype(0))) return make_pair_of(c, {BinaryFn::truncated_divide, false, Zero::division});
  return make_pair_of(c, {BinaryFn::divide});
}

std::unique_ptr<Kernel> make_mod(LowerContext& c) {
  const BinaryFn fn = ops::parse<ops::ModAttrs>(c).fmod ? BinaryFn::fmod : BinaryFn::remainder;
  return make_pair_of(c, {fn, false, is_integer(c.dtype(0)) ? Zero::modulo : Zero::permitted});
}

std::unique_ptr<Kernel> make_pow(LowerContext& c) {
  return make_pair_of(c, {is_integer(c.dtype(0)) ? BinaryFn::power_saturating : BinaryFn::power});
}

std::unique_ptr<Kernel> make_shift(LowerContext& c) {
  const bool left = ops::parse<ops::BitShiftAttrs>(c).direction == "LEFT";
  return make_pair_of(c, {left ? BinaryFn::left_shift : BinaryFn::right_shift});
}

// --- functions of one element

class MapKernel : public Kernel {
 public:
  MapKernel(UnaryFn fn, DataType type) : fn_(fn), type_(type) {}
  std::string_view name() const override { return "map-typed"; }
  int in_place() const override { return bit_width(result_type_of(fn_, type_)) == bit_width(type_) ? 0 : -1; }
  void run(const KernelContext& c) const override {
    const std::int64_t n = c.output(0).size();
    if (n != 0) apply(fn_, type_, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  UnaryFn fn_;
  DataType type_;
};

std::unique_ptr<Kernel> make_map_of(LowerContext& c, UnaryFn fn) {
  if (!supports(fn, c.dtype(0))) return c.refuse("not of a type that it knows");
  return std::make_unique<MapKernel>(fn, c.dtype(0));
}

template <UnaryFn kFn>
std::unique_ptr<Kernel> make_map(LowerContext& c) {
  return make_map_of(c, kFn);
}

std::unique_ptr<Kernel> make_is_inf(LowerContext& c) {
  const auto attr = ops::parse<ops::IsInfAttrs>(c);
  const bool negative = attr.detect_negative;
  const bool positive = attr.detect_positive;
  if (!negative && !positive) return c.refuse("detects no infinity");
  return make_map_of(c, negative && positive ? UnaryFn::isinf : (positive ? UnaryFn::isposinf : UnaryFn::isneginf));
}

class ActivationKernel : public Kernel {
 public:
  ActivationKernel(UnarySpec spec, DataType type) : spec_(spec), type_(type) {}
  std::string_view name() const override { return "activation-typed"; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const std::int64_t n = c.output(0).size();
    if (n != 0) activation(spec_, type_, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  UnarySpec spec_;
  DataType type_;
};

std::unique_ptr<Kernel> make_activation(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (!is_half(type) && type != DataType::float64) return c.refuse("not float64, float16 or bfloat16");
  const auto spec = unary_of(c);
  if (!spec) return c.refuse("parameters are not constant");
  return std::make_unique<ActivationKernel>(*spec, type);
}

class ClipKernel : public Kernel {
 public:
  explicit ClipKernel(DataType type) : type_(type) {}
  std::string_view name() const override { return "clip-typed"; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    const void *low = bound(c, ops::ClipIn::kMin), *high = bound(c, ops::ClipIn::kMax);
    const std::int64_t n = c.output(0).size();
    if (n != 0) clip(type_, low, high, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  const void* bound(const KernelContext& c, std::size_t i) const {
    if (!c.has_input(i)) return nullptr;
    const Tensor& t = c.input(i);
    if (t.size() != 1) {
      fail(ErrorCode::runtime_failure, "{} must be one {}, received {}", i == ops::ClipIn::kMin ? "min" : "max", sdx::name(type_),
           t.type_string());
    }
    return t.data();
  }

  DataType type_;
};

std::unique_ptr<Kernel> make_clip(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (c.node().version < 11) return c.refuse("bounds that are attributes, as before opset 11");
  if (type == DataType::boolean || !supports(BinaryFn::maximum, type)) return c.refuse("not of a type that it knows");
  const bool low = c.has_input(ops::ClipIn::kMin), high = c.has_input(ops::ClipIn::kMax);
  if (!low && !high) return c.refuse("no bounds");
  if ((low && c.dtype(ops::ClipIn::kMin) != type) || (high && c.dtype(ops::ClipIn::kMax) != type)) {
    return c.refuse("bounds of another type");
  }
  return std::make_unique<ClipKernel>(type);
}

// --- functions of three and of several

class WhereKernel : public Kernel {
 public:
  WhereKernel(int bytes, int in_place) : bytes_(bytes), in_place_(in_place) {}
  std::string_view name() const override { return "where"; }
  int in_place() const override { return in_place_; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<RowsState<3>>();
    state->plan = plan_rows<3>({c.input_shape(0), c.input_shape(1), c.input_shape(2)}, c.output_shape(0));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& plan = static_cast<const RowsState<3>*>(c.state)->plan;
    if (plan.inner == 0) return;
    select(bytes_, plan, static_cast<const std::uint8_t*>(c.input(0).data()), c.input(1).data(), c.input(2).data(),
           c.output(0).mutable_data());
  }

 private:
  int bytes_;
  int in_place_;
};

std::unique_ptr<Kernel> make_where(LowerContext& c) {
  const DataType type = c.dtype(1);
  if (c.dtype(0) != DataType::boolean || type != c.dtype(2) || type == DataType::string)
    return c.refuse("not numbers of one type");
  if (select_row(bit_width(type) / 8) == nullptr || bit_width(type) % 8 != 0) return c.refuse("not of 1, 2, 4, 8 or 16 bytes");
  for (const std::size_t i : {0, 1, 2}) {
    if (!known_rank(c, i)) return c.refuse("rank unknown or above 8");
  }
  // The output may overwrite the larger operand: the planner checks that both have the same size.
  const bool second = c.constant(1) != nullptr || c.shape(2)->size() > c.shape(1)->size();
  return std::make_unique<WhereKernel>(bit_width(type) / 8, second ? 2 : 1);
}

}  // namespace

void register_kernels_elements(KernelTable& t) {
  const auto pair = [&](const char* op, MakeKernel make) { t.add("", op, "pair-typed", 20, make); };
  pair("Equal", make_pair<BinaryFn::equal>);
  pair("Less", make_pair<BinaryFn::less>);
  pair("LessOrEqual", make_pair<BinaryFn::less_equal>);
  pair("Greater", make_pair<BinaryFn::less, true>);
  pair("GreaterOrEqual", make_pair<BinaryFn::less_equal, true>);
  pair("And", make_pair<BinaryFn::bitwise_and>);
  pair("Or", make_pair<BinaryFn::bitwise_or>);
  pair("Xor", make_pair<BinaryFn::bitwise_xor>);
  pair("BitwiseAnd", make_pair<BinaryFn::bitwise_and>);
  pair("BitwiseOr", make_pair<BinaryFn::bitwise_or>);
  pair("BitwiseXor", make_pair<BinaryFn::bitwise_xor>);
  pair("BitShift", make_shift);
  pair("Add", make_pair<BinaryFn::add>);
  pair("Sub", make_pair<BinaryFn::subtract>);
  pair("Mul", make_pair<BinaryFn::multiply>);
  pair("Div", make_div);
  pair("Mod", make_mod);
  pair("Pow", make_pow);
  pair("Min", make_pair<BinaryFn::minimum>);
  pair("Max", make_pair<BinaryFn::maximum>);
  pair("Sum", make_pair<BinaryFn::add>);
  pair("PRelu", make_pair<BinaryFn::prelu>);

  const auto map = [&](const char* op, MakeKernel make) { t.add("", op, "map-typed", 20, make); };
  map("Not", make_map<UnaryFn::logical_not>);
  map("BitwiseNot", make_map<UnaryFn::bitwise_invert>);
  map("IsNaN", make_map<UnaryFn::isnan>);
  map("IsInf", make_is_inf);
  map("Neg", make_map<UnaryFn::negative>);
  map("Abs", make_map<UnaryFn::abs>);
  map("Sign", make_map<UnaryFn::sign>);
  map("Relu", make_map<UnaryFn::relu>);
  map("Sqrt", make_map<UnaryFn::sqrt>);
  map("Reciprocal", make_map<UnaryFn::reciprocal>);
  map("Floor", make_map<UnaryFn::floor>);
  map("Ceil", make_map<UnaryFn::ceil>);
  map("Round", make_map<UnaryFn::round>);
  map("Sin", make_map<UnaryFn::sin>);
  map("Cos", make_map<UnaryFn::cos>);
  map("Tan", make_map<UnaryFn::tan>);
  map("Asin", make_map<UnaryFn::arcsin>);
  map("Acos", make_map<UnaryFn::arccos>);
  map("Atan", make_map<UnaryFn::arctan>);
  map("Sinh", make_map<UnaryFn::sinh>);
  map("Cosh", make_map<UnaryFn::cosh>);
  map("Asinh", make_map<UnaryFn::arcsinh>);
  map("Acosh", make_map<UnaryFn::arccosh>);
  map("Atanh", make_map<UnaryFn::arctanh>);

  for (const char* op : {"Sigmoid", "Tanh", "Softplus", "Exp", "Log", "Erf", "Softsign", "Mish", "HardSwish", "LeakyRelu",
                         "HardSigmoid", "Elu", "Selu", "Celu", "ThresholdedRelu", "Shrink", "Swish", "Gelu"}) {
    t.add("", op, "activation-typed", 20, make_activation);
  }
  for (const char* op : {"QuickGelu", "Gelu", "FastGelu"}) t.add("com.microsoft", op, "activation-typed", 20, make_activation);
  t.add("", "Clip", "clip-typed", 20, make_clip);
  t.add("", "Where", "where", 20, make_where);
}

}  // namespace sdx::cpu
