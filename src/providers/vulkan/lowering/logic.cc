// Comparisons, truth values, Where.

#include <array>

#include "base/error.h"
#include "ops/tensor/axes.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

struct NamedComparison {
  std::string_view name;
  Comparison comparison;
};
constexpr NamedComparison kComparisons[] = {{"Equal", Comparison::equal},
                                            {"Less", Comparison::less},
                                            {"Greater", Comparison::greater},
                                            {"LessOrEqual", Comparison::less_or_equal},
                                            {"GreaterOrEqual", Comparison::greater_or_equal},
                                            {"And", Comparison::both},
                                            {"Or", Comparison::either},
                                            {"Xor", Comparison::differ},
                                            {"Not", Comparison::negation}};

std::string refuse_ranks(const NodeFacts& n, int most) {
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    if (n.rank(i) < 0) return "input " + std::to_string(i) + " has an unknown rank";
    if (n.rank(i) > most) return "input " + std::to_string(i) + " has more than " + std::to_string(most) + " axes";
  }
  return "";
}

std::string refuse_comparison(const NodeFacts& n) {
  if (n.node().version < 7 && n.inputs() == 2) return "broadcasting before opset 7 is not supported";
  if (type_number(n.elem(0)) > 3) return "elements of this type are not compared";
  return refuse_ranks(n, static_cast<int>(kMostAxes));
}

void emit_comparison(Emitter& e, const Node& node) {
  Comparison how = Comparison::equal;
  for (const NamedComparison& c : kComparisons) {
    if (c.name == node.op_type) how = c.comparison;
  }
  const Shape out = e.shape(node.outputs[0]);
  const ValueId x = node.inputs[0], y = node.inputs.back();
  const std::int64_t count = element_count(out);
  Dispatch d(Shader::compare, {static_cast<std::uint32_t>(how), type_number(e.type(x))});
  d.read(x).read(y).write(node.outputs[0]).word(count);
  add_axes(d, broadcast_axes(e.shape(x), e.shape(y), out));
  e.dispatch(std::move(d), (count + 3) / 4, 4);
}

constexpr std::size_t kWhereAxes = 5;

std::string refuse_where(const NodeFacts& n) {
  const std::int64_t words = words_of(n.elem(1));
  if (words == 0) return "elements of this type are not moved";
  return refuse_ranks(n, static_cast<int>(kWhereAxes) - (words > 1 ? 1 : 0));
}

void emit_where(Emitter& e, const Node& node) {
  const std::int64_t words = words_of(e.type(node.inputs[1]));
  Shape out = e.shape(node.outputs[0]);
  std::array<std::vector<std::int64_t>, 3> steps;
  for (std::size_t i = 0; i < 3; ++i) {
    steps[i] = broadcast_steps(e.shape(node.inputs[i]), out);
    if (i == 0) continue;
    for (std::int64_t& step : steps[i]) step *= words;
  }
  if (words > 1) {
    out.push_back(words);
    steps[0].push_back(0);
    steps[1].push_back(1);
    steps[2].push_back(1);
  }
  const std::int64_t count = element_count(out);
  Dispatch d(Shader::where, {});
  d.read(node.inputs[0]).read(node.inputs[1]).read(node.inputs[2]).write(node.outputs[0]);
  d.word(count).word(static_cast<std::int64_t>(out.size()));
  SDX_ASSERT(out.size() <= kWhereAxes);
  out.resize(kWhereAxes, 1);
  for (const std::int64_t extent : out) d.word(extent);
  for (auto& list : steps) {
    list.resize(kWhereAxes, 0);
    for (const std::int64_t step : list) d.word(step);
  }
  e.dispatch(std::move(d), count);
}

}  // namespace

void add_logic(Operators& all) {
  for (const NamedComparison& c : kComparisons) all.push_back({"", c.name, refuse_comparison, emit_comparison});
  all.push_back({"", "Where", refuse_where, emit_where});
}

}  // namespace sdx::vulkan
