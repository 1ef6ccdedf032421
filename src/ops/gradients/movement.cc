// Gradients of operators that move elements.

#include "ops/gradient.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

void reshaped(GradientContext& c) { c.set(0, c.reshape_like(c.dy(), c.in(0))); }

void expand(GradientContext& c) { c.set_broadcast(0, c.dy()); }

void transpose(GradientContext& c) {
  const IntList perm = parse<TransposeAttrs>(c).perm.value_or(IntList());
  if (perm.empty()) return c.set(0, c.emit("Transpose", {c.dy()}));
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const auto to = static_cast<std::size_t>(perm[i]);
    if (to >= perm.size()) c.refuse("perm names an axis that does not exist");
    inverse[to] = static_cast<std::int64_t>(i);
  }
  c.set(0, c.emit("Transpose", {c.dy()}, {{"perm", inverse}}));
}

// The length of each input along the axis.
Expr lengths(GradientContext& c, std::int64_t axis) {
  std::vector<Expr> sizes;
  std::vector<std::int64_t> known;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const SymShape* s = c.shape(c.in(i));
    const std::int64_t at = s == nullptr || axis >= 0 ? axis : axis + static_cast<std::int64_t>(s->size());
    if (s != nullptr && at >= 0 && at < static_cast<std::int64_t>(s->size()) && (*s)[static_cast<std::size_t>(at)].is_const()) {
      known.push_back((*s)[static_cast<std::size_t>(at)].value());
    }
  }
  if (known.size() == c.num_inputs()) return c.ints(known);
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    sizes.push_back(c.emit("Gather", {c.shape_of(c.in(i)), c.ints({axis})}));
  }
  return c.emit("Concat", sizes, {{"axis", std::int64_t{0}}});
}

void concat(GradientContext& c) {
  const std::int64_t axis = parse<ConcatAttrs>(c).along();
  const std::vector<Expr> parts = c.emit_many("Split", {c.dy(), lengths(c, axis)}, c.num_inputs(), {{"axis", axis}});
  for (std::size_t i = 0; i < parts.size(); ++i) c.set(i, parts[i]);
}

void split(GradientContext& c) {
  std::vector<Expr> parts;
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) parts.push_back(c.dy_or_zeros(i));
  c.set(0, c.emit("Concat", parts, {{"axis", parse<SplitAttrs>(c).axis}}));
}

std::vector<Expr> inputs_with(GradientContext& c, Expr first) {
  std::vector<Expr> inputs{first};
  for (std::size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
  return inputs;
}

// Whatever the operator does to the elements it does to their positions. The few with versions that take fewer types than
// int64 are taken at the newest version, where they differ in nothing else.
void moved(GradientContext& c) {
  c.set(0, c.by_position(c.in(0), c.dy(), [&](Expr positions) { return c.repeat(inputs_with(c, positions)); }));
}

void top_k(GradientContext& c) {
  const std::int64_t axis = parse<TopKAttrs>(c).axis;
  const auto chosen = [&](Expr positions) { return c.emit("GatherElements", {positions, c.out(1)}, {{"axis", axis}}); };
  if (c.dy()) c.set(0, c.by_position(c.in(0), c.dy(), chosen));
}

void pad(GradientContext& c) {
  const std::string_view mode = parse<PadAttrs>(c).mode;
  if (c.version() < 11) {
    if (mode == "constant") {  // position 0 stands for what is filled in, and so must the value
      const auto positions = [&](Expr p) { return c.repeat({p}, {{"value", 0.0F}}); };
      return c.set(0, c.by_position(c.in(0), c.dy(), positions));
    }
    return moved(c);
  }
  Expr seen;
  c.set(0, c.by_position(c.in(0), c.dy(), [&](Expr positions) {
    std::vector<Expr> inputs = inputs_with(c, positions);
    if (inputs.size() > 2) inputs[2] = Expr{};
    seen = c.repeat(inputs);
    return seen;
  }));
  if (!c.wants(2) || mode != "constant") return;
  const Expr filled = c.emit("Where", {call("Equal", seen, c.int_scalar(0)), c.dy(), c.scalar(0)});
  c.set(2, c.reshape_like(c.emit("ReduceSum", {filled}, {{"keepdims", std::int64_t{0}}}), c.in(2)));
}

// The node of a scatter, with helpers for its updates.
struct Scatter {
  GradientContext& c;
  bool nd;

  // Gathers `e`, shaped like the data, at the places of the updates.
  Expr at_updates(Expr e) const {
    if (nd) return c.emit("GatherND", {e, c.in(1)});
    return c.emit("GatherElements", {e, c.in(1)}, {{"axis", parse<ScatterAttrs>(c).axis}});
  }
  Expr into(Expr data, Expr updates, const char* reduction) const {
    return c.repeat({data, c.in(1), updates}, {{"reduction", std::string(reduction)}});
  }
};

// The product of all other factors of an element: of those that are not zero where exactly one is.
void scatter_mul(GradientContext& c, const Scatter& s) {
  const Expr x = c.in(0);
  const Expr u = c.in(2);
  if (c.wants(0)) c.set(0, c.dy() * s.into(c.emit("Expand", {c.scalar(1), c.shape_of(x)}), u, "mul"));
  if (!c.wants(2)) return;
  const Expr zero = call("Equal", u, 0.0);
  const Expr filled = where(zero, c.scalar(1), u);
  const Expr zeros = s.at_updates(s.into(c.zeros_like(x), c.cast_like(zero, u), "add"));
  const Expr product = s.at_updates(c.dy() * s.into(x, filled, "mul"));
  const Expr lone = call("And", zero, call("Equal", zeros, 1.0));
  c.set(2, where(lone, product, where(call("Greater", zeros, 0.0), c.scalar(0), product / filled)));
}

// Equal elements share the gradient evenly.
void scatter_extreme(GradientContext& c, const Scatter& s) {
  const Expr x = c.in(0);
  const Expr u = c.in(2);
  const Expr stays = c.cast_like(call("Equal", x, c.out(0)), x);
  const Expr chosen = c.cast_like(call("Equal", u, s.at_updates(c.out(0))), u);
  const Expr g = c.dy() / s.into(stays, chosen, "add");
  if (c.wants(0)) c.set(0, stays * where(call("Greater", stays, 0.0), g, c.scalar(0)));
  if (c.wants(2)) c.set(2, chosen * where(call("Greater", chosen, 0.0), s.at_updates(g), c.scalar(0)));
}

// Elements that are overwritten count no more; with equal indices the order of writing is not defined, and neither is this.
template <bool nd>
void scatter(GradientContext& c) {
  const Scatter s{c, nd};
  const std::string_view mode = parse<ScatterAttrs>(c).reduction;
  if (mode == "mul") return scatter_mul(c, s);
  if (mode == "max" || mode == "min") return scatter_extreme(c, s);
  if (mode != "none" && mode != "add") c.refuse("reduction '" + std::string(mode) + "'");
  const Expr g = c.dy();
  if (c.wants(0)) c.set(0, mode == "add" ? g : c.repeat({g, c.in(1), c.zeros_like(c.in(2))}));
  if (c.wants(2)) c.set(2, s.at_updates(g));
}

}  // namespace

void register_gradients_movement(GradientTable& t) {
  t.add({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}, reshaped);
  t.add("Expand", expand);
  t.add("Transpose", transpose);
  t.add("Concat", concat);
  t.add("Split", split);
  t.add({"Slice", "Gather", "GatherElements", "GatherND", "Compress", "Tile", "DepthToSpace", "SpaceToDepth", "Trilu",
         "ReverseSequence", "CenterCropPad"},
        moved);
  t.add("Pad", pad);
  t.add("TopK", top_k);
  t.add({"ScatterElements", "Scatter"}, scatter<false>);
  t.add("ScatterND", scatter<true>);
}

}  // namespace sdx::ops
