#include "providers/cpu/layout/chain_step.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/cpu/elementwise/cast_simd.h"
#include "ops/math/signatures.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/activation.h"
#include "tensor/element.h"
#include "tensor/halves.h"

namespace sdx::cpu {
namespace {

using Kind = ChainStep::Kind;
constexpr std::size_t kMostRank = 8;

template <class T>
struct Named {
  std::string_view op;
  T what;
};

constexpr std::array<Named<Binary>, 8> kBinary = {{{"Add", Binary::add},
                                                   {"Sub", Binary::sub},
                                                   {"Mul", Binary::mul},
                                                   {"Div", Binary::div},
                                                   {"Pow", Binary::pow},
                                                   {"Min", Binary::min},
                                                   {"Max", Binary::max},
                                                   {"ReluGrad", Binary::relu_grad}}};
constexpr std::array<Named<Math>, 5> kMath = {
    {{"Sin", Math::sin}, {"Cos", Math::cos}, {"Atan", Math::atan}, {"Asin", Math::asin}, {"Acos", Math::acos}}};
constexpr std::array<Named<BinaryFn>, 14> kPair = {{{"Equal", BinaryFn::equal},
                                                    {"Less", BinaryFn::less},
                                                    {"LessOrEqual", BinaryFn::less_equal},
                                                    {"Greater", BinaryFn::less},
                                                    {"GreaterOrEqual", BinaryFn::less_equal},
                                                    {"And", BinaryFn::bitwise_and},
                                                    {"Or", BinaryFn::bitwise_or},
                                                    {"Xor", BinaryFn::bitwise_xor},
                                                    {"Add", BinaryFn::add},
                                                    {"Sub", BinaryFn::subtract},
                                                    {"Mul", BinaryFn::multiply},
                                                    {"Min", BinaryFn::minimum},
                                                    {"Max", BinaryFn::maximum},
                                                    {"Div", BinaryFn::divide}}};
constexpr std::array<Named<UnaryFn>, 5> kMap = {{{"Sqrt", UnaryFn::sqrt},
                                                 {"Not", UnaryFn::logical_not},
                                                 {"IsNaN", UnaryFn::isnan},
                                                 {"Neg", UnaryFn::negative},
                                                 {"Abs", UnaryFn::abs}}};

constexpr std::array<Named<Reduce>, 6> kReduce = {{{"ReduceSum", Reduce::sum},
                                                   {"ReduceMean", Reduce::mean},
                                                   {"ReduceMax", Reduce::max},
                                                   {"ReduceMin", Reduce::min},
                                                   {"ReduceSumSquare", Reduce::sum_square},
                                                   {"ReduceL1", Reduce::sum_abs}}};

template <class T, std::size_t N>
std::optional<T> named(const std::array<Named<T>, N>& list, std::string_view op) {
  for (const Named<T>& n : list) {
    if (n.op == op) return n.what;
  }
  return std::nullopt;
}

bool is_settled(const Type& t) {
  return t.is_tensor() && t.has_static_shape() && t.shape->size() <= kMostRank && t.elem != DataType::undefined &&
         t.elem != DataType::string && bit_width(t.elem) >= 8 && bit_width(t.elem) <= 64;
}

// Kernels for one operand depend on nothing but its elements; of several at least one must be as large as the result.
std::optional<ChainStep> one_operand(const LowerContext& c) {
  const std::string& op = c.node().op_type;
  ChainStep s;
  const DataType from = c.dtype(0), to = c.output(0).elem;
  if (op == "Cast") {
    const bool known =
        is_half(from) ? to == DataType::float32 : (is_half(to) ? from == DataType::float32 : cast_row(from, to) != nullptr);
    if (!known) return std::nullopt;
    s.kind = Kind::cast;
    s.from = from;
    s.to = to;
    return s;
  }
  if (from == DataType::float32) {
    if (const auto math = named(kMath, op)) {
      s.kind = Kind::math;
      s.math = *math;
      return s;
    }
    if (op != "IsNaN") {
      const auto spec = unary_of(c);
      if (!spec) return std::nullopt;
      s.spec = *spec;
      return s;
    }
  }
  const auto map = named(kMap, op);
  if (!map || plain_unary_row(*map, from) == nullptr) return std::nullopt;
  s.kind = Kind::map;
  s.map = *map;
  s.elem = from;
  return s;
}

std::optional<ChainStep> two_operands(const LowerContext& c) {
  const std::string& op = c.node().op_type;
  ChainStep s;
  s.operands = 2;
  s.operand[1] = 1;
  const DataType type = c.dtype(0);
  if (type != c.dtype(1)) return std::nullopt;
  if (type == DataType::float32) {
    if (op == "Mod") {
      s.kind = Kind::remainder;
      s.remainder = ops::parse<ops::ModAttrs>(c).fmod ? Remainder::fmod : Remainder::modulo;
      return s;
    }
    if (const auto binary = named(kBinary, op)) {
      s.kind = Kind::binary;
      s.binary = *binary;
      // Exponents that are the same for a row have shorter ways, which tiles that end within rows would not take.
      if (*binary == Binary::pow && *c.shape(0) != *c.shape(1) && element_count(to_shape(*c.shape(1))) != 1) return std::nullopt;
      return s;
    }
  }
  const auto pair = named(kPair, op);
  if (!pair || plain_binary_row(*pair, type) == nullptr) return std::nullopt;
  s.kind = Kind::pair;
  s.pair = *pair;
  s.elem = type;
  if (op == "Greater" || op == "GreaterOrEqual") std::swap(s.operand[0], s.operand[1]);
  return s;
}

std::optional<ChainStep> three_operands(const LowerContext& c) {
  if (c.node().op_type != "Where" || c.dtype(0) != DataType::boolean || c.dtype(1) != c.dtype(2)) return std::nullopt;
  ChainStep s;
  s.kind = Kind::select;
  s.operands = 3;
  return s;
}

}  // namespace

std::optional<ChainStep> chain_step(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.custom || !node.subgraphs.empty() || !(node.domain.empty() || node.domain == "com.microsoft")) return std::nullopt;
  if (node.inputs.empty() || node.inputs.size() > 3 || node.outputs.size() != 1) return std::nullopt;
  const LowerContext c(graph, id);
  const Type& out = c.output(0);
  if (!is_settled(out)) return std::nullopt;
  const bool clip = node.op_type == "Clip";  // its bounds are constants
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < (clip ? 1 : node.inputs.size()); ++i) {
    if (!c.has_input(i) || !is_settled(c.input(i))) return std::nullopt;
    largest = std::max(largest, element_count(to_shape(*c.shape(i))));
  }
  const std::int64_t count = element_count(to_shape(*out.shape));
  if (count == 0 || largest == 0) return std::nullopt;
  std::optional<ChainStep> s;
  if (node.inputs.size() == 1 || clip) {
    s = one_operand(c);
  } else if (node.domain.empty()) {
    s = node.inputs.size() == 2 ? two_operands(c) : three_operands(c);
  }
  if (s) s->bytes = static_cast<std::uint8_t>(bit_width(out.elem) / 8);
  return s;
}

std::optional<ChainFold> chain_fold(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.custom || !node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1) return std::nullopt;
  const auto op = named(kReduce, node.op_type);
  if (!op) return std::nullopt;
  const LowerContext c(graph, id);
  if (c.dtype(0) != DataType::float32 || !is_settled(c.input(0)) || !is_settled(c.output(0))) return std::nullopt;
  const auto attr = ops::parse<ops::ReduceAttrs>(c);
  std::vector<std::int64_t> axes = ops::to_vector(attr.axes);
  if (attr.axes_are_input && c.has_input(ops::ReduceIn::kAxes)) {
    const Tensor* t = c.constant(ops::ReduceIn::kAxes);
    if (t == nullptr) return std::nullopt;
    for (std::int64_t i = 0; i < t->size(); ++i) axes.push_back(element_as_int(*t, i));
  }
  if (axes.empty() && attr.noop_with_empty_axes) return std::nullopt;
  const Shape shape = to_shape(*c.shape(0));
  std::vector<bool> reduced(shape.size(), axes.empty());
  for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(ops::normalize_axis(axis, shape.size()))] = true;
  std::int64_t row = 1;
  bool ended = false;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (reduced[i] && ended) return std::nullopt;  // not the last axes
    ended = ended || !reduced[i];
    if (reduced[i]) row *= shape[i];
  }
  return ChainFold{*op, row};
}

}  // namespace sdx::cpu
