// Declarations that do not hold: of inputs, outputs, inner values, and the inputs of branches and loop bodies.

#include <array>
#include <memory>

#include "mutate.h"

namespace sdx::fuzz {
namespace {

constexpr std::int64_t kMostElements = 20'000;  // of an input whose extents change

// Few, so that most stand for several sizes; some read like expressions.
const std::vector<std::string>& symbols() {
  static const std::vector<std::string> kSymbols = {"N",    "N",     "batch",     "batch",        "?",
                                                    "None", "N + 1", "min(4, N)", "max(0, batch)"};
  return kSymbols;
}

constexpr std::array<std::int64_t, 8> kExtents{0, 1, 1, 2, 3, 5, 16, 64};
constexpr std::array kTypes{DataType::float32, DataType::float16, DataType::int64,  DataType::int32,
                            DataType::uint8,   DataType::int8,    DataType::boolean};

void lie_about_extents(Random& random, SymShape& shape, bool constants) {
  for (Dim& d : shape) {
    if (random.chance(50)) {
      d = Dim::symbol(random.pick(symbols()));
    } else if (constants && random.chance(40)) {
      d = Dim(random.pick(kExtents));
    } else if (random.chance(10)) {
      d = Dim::unknown();
    }
  }
}

Type false_type(Random& random, const Type& type) {
  Type out = type;
  if (random.chance(4)) out = Type::tensor(random.pick(kTypes), SymShape{Dim(random.pick(kExtents))});
  if (random.chance(4)) return Type::sequence(out);
  if (out.inner) out.inner = std::make_shared<const Type>(false_type(random, *out.inner));
  if (!out.is_tensor()) return out;
  if (random.chance(8)) out.elem = random.pick(kTypes);
  if (!out.shape) out.shape.emplace();
  SymShape& shape = *out.shape;
  if (random.chance(15)) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(random.below(shape.size() + 1)), Dim(1));
  } else if (random.chance(15) && !shape.empty()) {
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(random.below(shape.size())));
  }
  lie_about_extents(random, shape, true);
  if (random.chance(10)) out.shape.reset();
  return out;
}

void lie_inside(Random& random, Graph& g, bool main) {
  for (ValueId v = 0; v < g.values().size(); ++v) {
    ValueInfo& info = g.value(v);
    if ((main && info.is_input) || !random.chance(40)) continue;
    info.declared = info.type = false_type(random, info.type);
  }
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    for (Subgraph& s : g.node(id).subgraphs) lie_inside(random, *s.graph, false);
  }
}

// Broadcasts, or no longer fits.
Tensor of_other_extents(Random& random, const Tensor& given) {
  Shape shape = given.shape();
  for (std::int64_t& d : shape) {
    if (random.chance(35)) d = random.chance(70) ? 1 : random.pick(kExtents);
  }
  double count = 1;
  for (const std::int64_t d : shape) count *= static_cast<double>(d);
  if (shape == given.shape() || count > static_cast<double>(kMostElements)) return given;
  return random_tensor(random, given.dtype(), std::move(shape));
}

}  // namespace

void Mutator::lie(Example& e) {
  Graph& g = e.model.graph;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    ValueInfo& info = g.value(g.inputs()[i]);
    Type& type = info.declared;
    if (type.inner) type.inner = std::make_shared<const Type>(false_type(random_, *type.inner));
    // Another rank or element type would be refused at once.
    if (type.is_tensor() && type.shape) lie_about_extents(random_, *type.shape, random_.chance(30));
    info.type = type;
    const bool small = e.inputs[i].is_tensor() && e.inputs[i].tensor().size() <= kMostElements;
    if (small && random_.chance(60)) e.inputs[i] = of_other_extents(random_, e.inputs[i].tensor());
  }
  lie_inside(random_, g, true);
}

}  // namespace sdx::fuzz
