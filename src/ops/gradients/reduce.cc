// Gradients of reductions, softmax and running sums.

#include <optional>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// The node's result with the reduced axes kept.
Expr kept(GradientContext& c) {
  if (parse<ReduceAttrs>(c).keepdims) return c.out(0);
  std::vector<Expr> inputs;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
  return c.repeat(inputs, {{"keepdims", std::int64_t{1}}});
}

// The gradient of a sum over the same axes as the node's.
Expr of_sum(GradientContext& c, Expr y) { return parse<ReduceAttrs>(c).keepdims ? c.dy() : c.reshape(c.dy(), c.shape_of(y)); }

// The sum of `e`, shaped like the node's input, over the node's axes.
Expr same_sum(Expr e, GradientContext& c) {
  const auto attr = parse<ReduceAttrs>(c);
  const IntList axes = attr.axes;
  const EmittedAttributes keep{{"keepdims", std::int64_t{1}}};
  if (!axes.empty()) return c.emit("ReduceSum", {e, c.ints(to_vector(axes))}, keep);
  const std::int64_t noop = attr.noop_with_empty_axes ? 1 : 0;
  return c.emit("ReduceSum", c.has_input(1) ? std::vector<Expr>{e, c.in(1)} : std::vector<Expr>{e},
                {{"keepdims", std::int64_t{1}}, {"noop_with_empty_axes", noop}});
}

Expr expand(Expr e, Expr like) { return call("Expand", e, like.here().shape_of(like)); }

// The axes that are summed over, where that is known.
std::optional<std::vector<std::int64_t>> summed_axes(GradientContext& c) {
  const auto attr = parse<ReduceAttrs>(c);
  std::vector<std::int64_t> axes = to_vector(attr.axes);
  if (c.has_input(1)) {
    if (c.value(1) == nullptr) return std::nullopt;
    axes = to_ints(c.value(1)->clone());
  }
  const SymShape* x = c.shape(c.in(0));
  if (!axes.empty() || attr.noop_with_empty_axes) return axes;
  if (x == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

// The gradient of the node's result so that it broadcasts to the node's input.
Expr broadcastable(GradientContext& c) {
  if (parse<ReduceAttrs>(c).keepdims) return c.dy();
  const auto axes = summed_axes(c);
  if (!axes) return of_sum(c, kept(c));
  const SymShape* x = c.shape(c.in(0));
  const bool all = x != nullptr && axes->size() == x->size();  // a scalar broadcasts as it is
  return axes->empty() || all ? c.dy() : c.emit("Unsqueeze", {c.dy(), c.ints(*axes)});
}

void reduce_sum(GradientContext& c) { c.set(0, expand(broadcastable(c), c.in(0))); }

// The divisor of a mean; 0 if unknown before the run.
std::int64_t averaged(GradientContext& c) {
  const SymShape* x = c.shape(c.in(0));
  const auto axes = summed_axes(c);
  if (x == nullptr || !axes) return 0;
  std::int64_t count = 1;
  for (const std::int64_t axis : normalize_axes(*axes, x->size())) {
    const Dim& d = (*x)[static_cast<std::size_t>(axis)];
    const auto product = d.is_const() ? checked_mul(count, d.value()) : std::nullopt;
    if (!product) return 0;
    count = *product;
  }
  return count;
}

void reduce_mean(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr g = broadcastable(c);
  if (const std::int64_t n = averaged(c); n != 0) return c.set(0, expand(g * (1.0 / static_cast<double>(n)), x));
  const Expr part = c.cast_like(call("Size", c.dy()), x) / c.cast_like(call("Size", x), x);
  c.set(0, expand(g * part, x));
}

// Equal elements share the gradient evenly.
void reduce_extreme(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr y = kept(c);
  const Expr chosen = c.cast_like(call("Equal", x, y), x);
  c.set(0, chosen * (of_sum(c, y) / same_sum(chosen, c)));
}

// The product of the other elements: of those that are not zero where exactly one is.
void reduce_prod(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr y = kept(c);
  const Expr zero = call("Equal", x, 0.0);
  const Expr zeros = same_sum(c.cast_like(zero, x), c);
  const Expr filled = where(zero, c.scalar(1), x);
  std::vector<Expr> inputs{filled};
  if (c.has_input(1)) inputs.push_back(c.in(1));
  const Expr product = c.repeat(inputs, {{"keepdims", std::int64_t{1}}});
  const Expr lone = call("And", call("Equal", zeros, 1.0), zero);
  const Expr slope = where(lone, product, where(call("Greater", zeros, 0.0), c.scalar(0), product / filled));
  c.set(0, of_sum(c, y) * slope);
}

void reduce_l1(GradientContext& c) { c.set(0, call("Sign", c.in(0)) * of_sum(c, kept(c))); }

// x / y; 0 where all elements are.
void reduce_l2(GradientContext& c) {
  const Expr y = kept(c);
  const Expr safe = where(call("Equal", y, 0.0), c.scalar(1), y);
  c.set(0, c.in(0) * (of_sum(c, y) / safe));
}

void reduce_sum_square(GradientContext& c) { c.set(0, c.in(0) * (of_sum(c, kept(c)) * 2.0)); }

void reduce_log_sum(GradientContext& c) {
  const Expr y = kept(c);
  c.set(0, expand(of_sum(c, y) / call("Exp", y), c.in(0)));
}

void reduce_log_sum_exp(GradientContext& c) {
  const Expr y = kept(c);
  c.set(0, of_sum(c, y) * call("Exp", c.in(0) - y));
}

void cum_sum(GradientContext& c) {
  const std::int64_t reverse = parse<CumulativeAttrs>(c).reverse ? 0 : 1;
  c.set(0, c.repeat({c.dy(), c.in(1)}, {{"reverse", reverse}}));
}

// The products without one element: where there is a zero, of those that have none but it.
void cum_prod(GradientContext& c) {
  const Expr x = c.in(0);
  const bool reverse = parse<CumulativeAttrs>(c).reverse;
  const std::int64_t exclusive = parse<CumulativeAttrs>(c).exclusive ? 1 : 0;
  const auto sums = [&](Expr e, bool back, std::int64_t without) {
    return c.emit("CumSum", {e, c.in(1)}, {{"reverse", std::int64_t{back}}, {"exclusive", without}});
  };
  const Expr zero = call("Equal", x, 0.0);
  const Expr zeros = sums(c.cast_like(zero, x), reverse, 0);
  const Expr first = call("And", zero, call("Equal", zeros, 1.0));
  const Expr filled = where(first, c.scalar(1), x);
  const Expr lone = sums(c.dy() * c.repeat({filled, c.in(1)}), !reverse, exclusive);
  const Expr others = sums(c.dy() * c.out(0), !reverse, exclusive) / where(zero, c.scalar(1), x);
  c.set(0, where(first, lone, where(call("Greater", zeros, 0.0), c.scalar(0), others)));
}

// One axis since 13; before, all axes from `axis` on together.
std::vector<std::int64_t> softmax_axes(GradientContext& c) {
  const auto attr = parse<SoftmaxAttrs>(c);
  std::int64_t axis = attr.axis;
  if (!attr.flattened) return {axis};
  const std::int64_t rank = c.rank(c.in(0));
  if (axis < 0) axis += rank;
  if (axis < 0) c.refuse("an axis that does not exist");
  std::vector<std::int64_t> axes;
  for (; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

void softmax(GradientContext& c) {
  const Expr y = c.out(0);
  const Expr g = c.dy() * y;
  c.set(0, g - y * c.sum(g, softmax_axes(c)));
}

void log_softmax(GradientContext& c) {
  const Expr g = c.dy();
  c.set(0, g - call("Exp", c.out(0)) * c.sum(g, softmax_axes(c)));
}

}  // namespace

void register_gradients_reduce(GradientTable& t) {
  t.add("ReduceSum", reduce_sum);
  t.add("ReduceMean", reduce_mean);
  t.add({"ReduceMax", "ReduceMin"}, reduce_extreme);
  t.add("ReduceProd", reduce_prod);
  t.add("ReduceL1", reduce_l1);
  t.add("ReduceL2", reduce_l2);
  t.add("ReduceSumSquare", reduce_sum_square);
  t.add("ReduceLogSum", reduce_log_sum);
  t.add("ReduceLogSumExp", reduce_log_sum_exp);
  t.add("CumSum", cum_sum);
  t.add("CumProd", cum_prod);
  t.add("Softmax", softmax);
  t.add("LogSoftmax", log_softmax);
}

}  // namespace sdx::ops
