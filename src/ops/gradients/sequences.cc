// Gradients of operators on sequences: sequences of gradients.

#include "base/error.h"
#include "ops/gradient.h"
#include "ops/gradients/flow/body.h"
#include "ops/sequence/signatures.h"

namespace sdx::ops {
namespace {

using flow::Body;

Expr length_of(Expr sequence) { return call("SequenceLength", sequence); }

// The position of input `i`, counted from the front of `length` items.
Expr position(GradientContext& c, std::size_t i, Expr length) {
  const Expr p = c.emit("Cast", {c.in(i)}, {{"to", static_cast<std::int64_t>(DataType::int64)}});
  return where(call("Less", p, c.int_scalar(0)), p + length, p);
}

Expr zeros(GradientContext& c, Expr like) { return c.expr(append_zeros(c.graph(), like.id)); }

DataType items_of(const GradientContext& c, const Type& t) {
  if (!t.inner || !t.inner->is_tensor() || t.inner->elem == DataType::undefined) c.refuse("the type of the items is not known");
  return t.inner->elem;
}

void construct(GradientContext& c) {
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.set(i, c.emit("SequenceAt", {c.dy(), c.int_scalar(static_cast<std::int64_t>(i))}));
  }
}

void at(GradientContext& c) {
  const Expr sequence = c.in(0);
  const Expr p = position(c, 1, length_of(sequence));
  const Expr others = c.emit("SequenceErase", {zeros(c, sequence), p});
  c.set(0, c.emit("SequenceInsert", {others, c.dy(), p}));
}

void insert(GradientContext& c) {
  const Expr g = c.dy();
  const Expr p = c.has_input(2) ? position(c, 2, call("Sub", length_of(g), c.int_scalar(1))) : c.int_scalar(-1);
  if (c.wants(0)) c.set(0, c.emit("SequenceErase", {g, p}));
  if (c.wants(1)) c.set(1, c.emit("SequenceAt", {g, p}));
}

void erase(GradientContext& c) {
  const Expr sequence = c.in(0);
  const Expr length = length_of(sequence);
  const Expr p = c.has_input(1) ? position(c, 1, length) : call("Sub", length, c.int_scalar(1));
  const Expr erased = c.emit("SequenceAt", {sequence, p});
  c.graph().value(erased.id).type = Type::tensor(items_of(c, c.graph().value(sequence.id).type));
  c.set(0, c.emit("SequenceInsert", {c.dy(), zeros(c, erased), p}));
}

// The extents of the items along the axis: one number where it is known to be the same for all.
Expr extents_along(GradientContext& c, std::int64_t axis) {
  const Type& type = c.graph().value(c.in(0).id).type;
  const DataType elem = items_of(c, type);
  const auto& shape = type.inner->shape;
  if (shape) {
    const std::int64_t rank = static_cast<std::int64_t>(shape->size());
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    const bool known = from_front >= 0 && from_front < rank && (*shape)[static_cast<std::size_t>(from_front)].is_const();
    const std::int64_t extent = known ? (*shape)[static_cast<std::size_t>(from_front)].value() : 0;
    if (extent > 0) return c.int_scalar(extent);
  }
  const ValueId each = append_map(c.graph(), {c.in(0).id}, elem, [&](Graph& g, const std::vector<ValueId>& items) {
    const ValueId number = g.add_constant("axis", Tensor::of<std::int64_t>({1}, {axis}));
    return append_node(g, "Gather", {append_node(g, "Shape", items), number});
  });
  return c.emit("ConcatFromSequence", {c.expr(each)}, {{"axis", std::int64_t{0}}});
}

void concat(GradientContext& c) {
  const auto attr = parse<ConcatFromSequenceAttrs>(c);
  if (attr.new_axis) {
    return c.set(0, c.emit("SplitToSequence", {c.dy()}, {{"axis", attr.axis}, {"keepdims", std::int64_t{0}}}));
  }
  c.set(0, c.emit("SplitToSequence", {c.dy(), extents_along(c, attr.axis)}, {{"axis", attr.axis}}));
}

void split(GradientContext& c) {
  const auto attr = parse<SplitToSequenceAttrs>(c);
  const std::int64_t new_axis = c.has_input(1) || attr.keepdims ? 0 : 1;
  c.set(0, c.emit("ConcatFromSequence", {c.dy()}, {{"axis", attr.axis}, {"new_axis", new_axis}}));
}

// A SequenceMap over the same items. What is no sequence gets one contribution of each item; they are added up.
class MapGradient {
 public:
  explicit MapGradient(GradientContext& c) : c_(c), body_(c, 0) {}

  void run() {
    Graph& b = body_.graph();
    std::vector<Seed> seeds;
    std::vector<std::pair<ValueId, ValueId>> items;  // of gradients: inside, the sequence outside
    for (std::size_t i = 0; i < c_.node().outputs.size(); ++i) {
      if (!c_.dy(i)) continue;
      items.emplace_back(b.add_value("gradient", body_.type(body_.output(i))), c_.dy(i).id);
      seeds.push_back({body_.output(i), items.back().first});
    }
    std::vector<ValueId> sources;
    for (std::size_t i = 0; i < c_.num_inputs(); ++i) sources.push_back(body_.formal(i));
    const Body::Found found = body_.back(seeds, sources);
    std::vector<std::size_t> results;  // operands
    for (std::size_t i = 0; i < c_.num_inputs(); ++i) {
      if (c_.wants(i) && found.sources[i] != kNoValue) add_result(results, i, found.sources[i]);
    }
    for (const auto& [number, g] : found.captures) add_result(results, body_.operand(number), g);
    if (results.empty()) return;
    body_.prune();
    if (!body_.take_random().empty()) c_.refuse("a random operator in the graph; a Loop can record its results");
    for (std::size_t i = 0; i < c_.num_inputs(); ++i) {
      if (i == 0 || body_.used(sources[i])) add_input(sources[i], c_.in(i).id);
    }
    for (const auto& [inside, outside] : items) {
      if (body_.used(inside)) add_input(inside, outside);
    }
    emit(results);
  }

 private:
  void add_result(std::vector<std::size_t>& results, std::size_t operand, ValueId gradient) {
    results.push_back(operand);
    body_.graph().add_output(gradient);
  }

  void add_input(ValueId inside, ValueId outside) {
    body_.provide(inside, body_.graph().add_input("item", body_.type(inside)));
    node_.inputs.push_back(outside);
  }

  void emit(const std::vector<std::size_t>& results) {
    node_.op_type = "SequenceMap";
    node_.version = 21;
    for (std::size_t i = 0; i < results.size(); ++i) node_.outputs.push_back(c_.graph().add_value("gradient"));
    const std::vector<ValueId> outputs = node_.outputs;
    node_.subgraphs.push_back(body_.finish("body"));
    c_.graph().add_node(std::move(node_));
    const std::vector<ValueId> reads = operands(c_.node());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Expr each = c_.expr(outputs[i]);
      const ValueId of = reads[results[i]];
      c_.set(results[i], c_.graph().value(of).type.kind == Type::Kind::sequence ? each : sum(each, c_.expr(of)));
    }
  }

  // There may be no item at all: zeros come first.
  Expr sum(Expr each, Expr like) {
    const Expr all = c_.emit("SequenceInsert", {each, zeros(c_, like), c_.int_scalar(0)});
    const Expr stacked = c_.emit("ConcatFromSequence", {all}, {{"axis", std::int64_t{0}}, {"new_axis", std::int64_t{1}}});
    return c_.sum(stacked, {0}, false);
  }

  GradientContext& c_;
  Body body_;
  Node node_;
};

void map(GradientContext& c) { MapGradient(c).run(); }

}  // namespace

void register_gradients_sequences(GradientTable& t) {
  t.add({{"SequenceConstruct", construct},
         {"SequenceAt", at},
         {"SequenceInsert", insert},
         {"SequenceErase", erase},
         {"ConcatFromSequence", concat},
         {"SplitToSequence", split},
         {"SequenceMap", map}});
}

}  // namespace sdx::ops
