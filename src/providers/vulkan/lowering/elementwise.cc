// Functions of elements: one operand (map.comp), two with broadcasting (pair.comp).

#include <limits>

#include "base/error.h"
#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "providers/vulkan/lowering/activation.h"
#include "providers/vulkan/lowering/arithmetic.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"
#include "tensor/element.h"

namespace sdx::vulkan {

std::string refuse_activation(const Node& node) {
  const ops::FusedActivationAttrs a = ops::read_fused_activation(node);
  return a.kind == ops::FusedActivation::selu ? "this activation is not fused" : "";
}

void emit_two(Emitter& e, Pair pair, Operand x, const Shape& x_shape, Operand y, const Shape& y_shape, Operand z,
              const Shape& out) {
  const std::int64_t count = element_count(out);
  Dispatch d(Shader::pair, {static_cast<std::uint32_t>(pair)});
  d.read(x).read(y).write(z).word(count);
  add_axes(d, broadcast_axes(x_shape, y_shape, out));
  e.dispatch(std::move(d), count);
}

FunctionSpec fused_function(const Node& node) {
  const ops::FusedActivationAttrs a = ops::read_fused_activation(node);
  return {static_cast<Function>(a.kind), a.alpha, a.beta, a.gamma};
}

namespace {

struct Named {
  std::string_view domain, name;
  Function function;
};

constexpr Named kFunctions[] = {
    {"", "Relu", Function::relu},
    {"", "Tanh", Function::tanh},
    {"", "Sigmoid", Function::sigmoid},
    {"", "LeakyRelu", Function::leaky_relu},
    {"", "ThresholdedRelu", Function::thresholded_relu},
    {"", "HardSigmoid", Function::hard_sigmoid},
    {"", "HardSwish", Function::hard_swish},
    {"", "Elu", Function::elu},
    {"", "Gelu", Function::gelu},
    {"com.microsoft", "Gelu", Function::gelu},
    {"com.microsoft", "QuickGelu", Function::quick_gelu},
    {"", "Softsign", Function::softsign},
    {"", "Softplus", Function::softplus},
    {"", "Selu", Function::selu},
    {"", "Celu", Function::celu},
    {"", "Sqrt", Function::sqrt},
    {"", "Exp", Function::exp},
    {"", "Log", Function::log},
    {"", "Neg", Function::neg},
    {"", "Abs", Function::abs},
    {"", "Erf", Function::erf},
    {"", "Sin", Function::sin},
    {"", "Cos", Function::cos},
    {"", "Reciprocal", Function::reciprocal},
    {"", "Floor", Function::floor},
    {"", "Ceil", Function::ceil},
    {"", "Round", Function::round},
    {"", "Sign", Function::sign},
    {"", "Mish", Function::mish},
};

void emit_map(Emitter& e, const Node& node, const FunctionSpec& f) {
  const std::int64_t count = e.size(node.outputs[0]);
  Dispatch d(Shader::map, {static_cast<std::uint32_t>(f.function)});
  d.read(node.inputs[0]).write(node.outputs[0]).word(count).number(f.alpha).number(f.beta).number(f.gamma);
  e.dispatch(std::move(d), count);
}

std::string refuse_floats(const NodeFacts& n) { return n.all_floats(); }

void emit_function(Emitter& e, const Node& node) {
  for (const Named& named : kFunctions) {
    if (named.name != node.op_type || named.domain != node.domain) continue;
    const auto a = ops::ActivationAttrs::of(node.op_type, node.version);
    FunctionSpec f{named.function, a.alpha, a.beta, a.gamma};
    f.alpha = node.attributes.get_float("alpha", f.alpha);
    f.beta = node.attributes.get_float("beta", f.beta);
    f.gamma = node.attributes.get_float("gamma", f.gamma);
    if (named.function == Function::gelu && node.attributes.get_string("approximate", "none") == "tanh")
      f.function = Function::gelu_tanh;
    return emit_map(e, node, f);
  }
  fail(ErrorCode::internal, "vulkan: no function for {}", node.op_type);
}

std::string refuse_clip(const NodeFacts& n) {
  if (!n.is_float(0)) return "input 0 is not float32";
  for (std::size_t i = 1; i < 3; ++i) {
    if (n.has(i) && !n.on_host(i)) return "its bounds are computed by other nodes";
  }
  return "";
}

void emit_clip(Emitter& e, const Node& node) {
  const auto attr = ops::parse<ops::ClipAttrs>(node);
  float low = attr.min.value_or(-std::numeric_limits<float>::infinity());
  float high = attr.max.value_or(std::numeric_limits<float>::infinity());
  const auto bound = [&](std::size_t input, float& to) {
    if (!e.has(node, input)) return;
    const Tensor* t = e.known(node.inputs[input]);
    if (t == nullptr || t->size() != 1) fail(ErrorCode::runtime_failure, "vulkan: a bound of Clip is not one known number");
    to = static_cast<float>(element_as_double(t->is_aligned() ? *t : t->aligned(), 0));
  };
  bound(ops::ClipIn::kMin, low);
  bound(ops::ClipIn::kMax, high);
  // The shader asks for the lower bound first; the operator gives the upper one where they cross.
  emit_map(e, node, {Function::clip, std::min(low, high), high, 0});
}

struct NamedPair {
  std::string_view name;
  Pair pair;
};

constexpr NamedPair kPairs[] = {{"Add", Pair::add}, {"Sub", Pair::sub},     {"Mul", Pair::mul},
                                {"Div", Pair::div}, {"Min", Pair::min},     {"Max", Pair::max},
                                {"Pow", Pair::pow}, {"PRelu", Pair::prelu}, {"Sum", Pair::add}};

std::string refuse_pair(const NodeFacts& n) {
  if (n.node().version < 7) return "broadcasting before opset 7 is not supported";
  return n.all_floats_of_rank();
}

// Min, Max and Sum have any number of operands: each further one is taken to the result so far.
void emit_pair(Emitter& e, const Node& node) {
  Pair pair = Pair::add;
  for (const NamedPair& p : kPairs) {
    if (p.name == node.op_type) pair = p.pair;
  }
  const ValueId out = node.outputs[0];
  if (node.inputs.size() == 1) return e.alias(out, node.inputs[0]);
  const Shape shape = e.shape(out);
  Operand so_far = node.inputs[0];
  Shape so_far_shape = e.shape(node.inputs[0]);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    // The operands of a step have the result's shape only at the end, so every step computes it whole.
    const bool last = i + 1 == node.inputs.size();
    const Operand to = last ? static_cast<Operand>(out) : e.temporary(e.bytes(out));
    emit_two(e, pair, so_far, so_far_shape, node.inputs[i], e.shape(node.inputs[i]), to, shape);
    so_far = to;
    so_far_shape = shape;
  }
}

std::string refuse_cast(const NodeFacts& n) {
  if (!n.type(0).is_tensor() || type_number(n.elem(0)) > 3) return "elements of this type are not converted";
  if (type_number(static_cast<DataType>(n.node().attributes.get_int("to", 0))) > 2) return "nothing is converted to this type";
  return "";
}

void emit_cast(Emitter& e, const Node& node) {
  const std::uint32_t from = type_number(e.type(node.inputs[0])), to = type_number(e.type(node.outputs[0]));
  if (from == to) return e.alias(node.outputs[0], node.inputs[0]);
  const std::int64_t count = e.size(node.outputs[0]);
  Dispatch d(Shader::cast, {from, to});
  d.read(node.inputs[0]).write(node.outputs[0]).word(count);
  e.dispatch(std::move(d), count);
}

}  // namespace

void add_activations(Operators& all) {
  for (const Named& n : kFunctions) all.push_back({n.domain, n.name, refuse_floats, emit_function});
  all.push_back({"", "Clip", refuse_clip, emit_clip});
  all.push_back({"", "Cast", refuse_cast, emit_cast});
}

void add_arithmetic(Operators& all) {
  for (const NamedPair& p : kPairs) all.push_back({"", p.name, refuse_pair, emit_pair});
}

}  // namespace sdx::vulkan
