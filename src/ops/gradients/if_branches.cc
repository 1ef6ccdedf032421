// Gradient of If: an If whose branches compute theirs again and lead back through them.

#include <algorithm>

#include "graph/edit.h"
#include "ops/gradients/flow/body.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

using flow::Body;

class IfGradient {
 public:
  explicit IfGradient(GradientContext& c) : c_(c), before_(c.node().outputs.size()) {}

  void run() {
    const std::vector<ValueId> reads = operands(c_.node());
    for (std::size_t i = c_.num_inputs(); i < reads.size(); ++i) {
      if (!c_.wants(i) || std::find(targets_.begin(), targets_.end(), reads[i]) != targets_.end()) continue;
      targets_.push_back(reads[i]);
      operands_.push_back(i);
    }
    Node n = make_node({}, "If", 21, {c_.in(0).id});
    for (std::size_t s = 0; s < c_.node().subgraphs.size(); ++s) n.subgraphs.push_back(branch(s));
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      n.outputs.push_back(c_.graph().add_value("gradient", c_.graph().value(targets_[i]).type));
      c_.set(operands_[i], c_.expr(n.outputs.back()));
    }
    c_.graph().add_node(std::move(n));
  }

 private:
  Subgraph branch(std::size_t s) {
    Body b(c_, s);
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < before_; ++i) {
      if (c_.dy(i)) seeds.push_back({b.output(i), b.capture(c_.dy(i).id)});
    }
    const Body::Found found = b.back(seeds, {});
    for (const ValueId target : targets_) b.graph().add_output(gradient(b, found, target));
    b.prune();
    for (const ValueId v : b.take_random()) b.provide(v, b.capture(record(s, v)));
    return b.finish(c_.node().subgraphs[s].attribute.c_str());
  }

  ValueId gradient(Body& b, const Body::Found& found, ValueId target) {
    ValueId sum = kNoValue;
    for (const auto& [number, g] : found.captures) {
      if (b.outside(number) != target) continue;
      sum = sum == kNoValue ? g : append_sum(b.graph(), sum, g, c_.graph().value(target).type);
    }
    return sum != kNoValue ? sum : append_zeros(b.graph(), b.capture(target));
  }

  // The If gives `v` of its branch as well; the other branch gives a zero in its place.
  ValueId record(std::size_t s, ValueId v) {
    const Type type = flow::own_body(c_, s).value(v).type;
    for (std::size_t other = 0; other < c_.node().subgraphs.size(); ++other) {
      if (other == s) continue;
      Graph& g = flow::own_body(c_, other);
      Tensor zero(type.elem, {});
      set_element(zero, 0, 0.0);
      g.add_output(append_node(g, "Identity", {g.add_constant("none", std::move(zero))}));
    }
    return flow::add_result(c_, s, v, Type::tensor(type.elem));
  }

  GradientContext& c_;
  std::size_t before_;                 // outputs, without what is recorded
  std::vector<ValueId> targets_;       // what gets a gradient
  std::vector<std::size_t> operands_;  // and by which operand
};

void if_branches(GradientContext& c) { IfGradient(c).run(); }

}  // namespace

void register_gradients_if_branches(GradientTable& t) { t.add("If", if_branches); }

}  // namespace sdx::ops
