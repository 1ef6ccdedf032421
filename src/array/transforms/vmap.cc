// vmap(): calls the function once with arguments that lack the axis, then makes its operations anew for the whole batch.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/transforms/tape.h"

namespace sdx::array {
namespace detail {
namespace {

// Moves the axis to the front, and inserts axes behind it up to the results' rank, so that inputs broadcast with each other.
array aligned(const array& input, int axis, std::size_t rank) {
  array front = moveaxis(input, axis, 0);
  const std::size_t own = front.shape().size() - 1;
  if (own >= rank) return front;
  Shape shape{front.shape()[0]};
  shape.insert(shape.end(), rank - own, 1);
  shape.insert(shape.end(), front.shape().begin() + 1, front.shape().end());
  return reshape(front, shape);
}

VmapResult elementwise(const Node& node, const std::vector<array>& inputs, const std::vector<int>& in_axes, std::int64_t batch) {
  std::vector<array> whole;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    whole.push_back(in_axes[i] < 0 ? inputs[i] : aligned(inputs[i], in_axes[i], node.results[0].shape.size()));
  }
  std::vector<std::pair<Dtype, Shape>> types;
  for (const Result& r : node.results) {
    Shape shape{batch};
    shape.insert(shape.end(), r.shape.begin(), r.shape.end());
    types.emplace_back(r.dtype, std::move(shape));
  }
  std::vector<array> made = make_many(*node.kind, std::move(types), std::move(whole), node.params, node.stream);
  return {std::move(made), std::vector<int>(node.results.size(), 0)};
}

VmapResult one_by_one(const Node& node, const std::vector<array>& inputs, const std::vector<int>& in_axes, std::int64_t batch) {
  std::vector<std::vector<array>> parts;  // of each input
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    parts.push_back(in_axes[i] < 0 ? std::vector<array>{inputs[i]} : unstack(inputs[i], in_axes[i]));
  }
  std::vector<std::vector<array>> results(node.results.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<array> of_one;
    for (std::size_t i = 0; i < inputs.size(); ++i) of_one.push_back(parts[i][in_axes[i] < 0 ? 0 : static_cast<std::size_t>(b)]);
    std::vector<array> made = again(node, std::move(of_one));
    for (std::size_t r = 0; r < made.size(); ++r) results[r].push_back(std::move(made[r]));
  }
  VmapResult out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    Shape none{0};
    none.insert(none.end(), node.results[r].shape.begin(), node.results[r].shape.end());
    out.outputs.push_back(batch == 0 ? zeros_of(node.results[r].dtype, none) : stack(results[r], 0));
    out.out_axes.push_back(0);
  }
  return out;
}

}  // namespace

VmapResult batched(const Node& node, const std::vector<array>& inputs, const std::vector<int>& in_axes, std::int64_t batch) {
  if (node.kind->vmap != nullptr) return node.kind->vmap({inputs, in_axes, node.params, batch});
  return node.kind->elementwise ? elementwise(node, inputs, in_axes, batch) : one_by_one(node, inputs, in_axes, batch);
}

}  // namespace detail

namespace {

using Arrays = std::vector<array>;
using detail::refuse;

struct Batch {
  std::int64_t size = -1;
  std::vector<int> axes;  // by argument; -1: not batched
};

Batch batch_of(const Arrays& args, const BatchAxes& in_axes) {
  if (!in_axes.empty() && in_axes.size() != args.size()) {
    refuse("vmap", "{} axes are given for {} arguments", in_axes.size(), args.size());
  }
  Batch batch;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::optional<int> axis = in_axes.empty() ? std::optional<int>(0) : in_axes[i];
    batch.axes.push_back(axis ? detail::axis_of("vmap", *axis, args[i].shape().size()) : -1);
    if (!axis) continue;
    const std::int64_t extent = args[i].shape()[static_cast<std::size_t>(batch.axes[i])];
    if (batch.size >= 0 && batch.size != extent) {
      refuse("vmap", "argument {} has {} elements along its axis {}, others have {}", i, extent, batch.axes[i], batch.size);
    }
    batch.size = extent;
  }
  if (batch.size < 0) refuse("vmap", "no argument is batched: at least one needs an axis");
  return batch;
}

// Maps each operation and argument of the tape to its results for the whole batch and their batch axes.
class Rebuilt {
 public:
  Rebuilt(const detail::Tape& tape, const Arrays& args, const Batch& batch) : tape_(tape), args_(args), batch_(batch) {
    for (detail::Node* node : tape.order) {
      Arrays inputs;
      std::vector<int> axes;
      for (const array& input : node->inputs) {
        const auto [made, axis] = of(input);
        inputs.push_back(made);
        axes.push_back(axis);
      }
      if (std::all_of(axes.begin(), axes.end(), [](int axis) { return axis < 0; })) {
        Arrays made = detail::again(*node, std::move(inputs));  // of arguments that are not batched
        const std::vector<int> none(made.size(), -1);
        steps_.push_back({std::move(made), none});
      } else {
        steps_.push_back(detail::batched(*node, inputs, axes, batch.size));
      }
    }
  }

  std::pair<array, int> of(const array& a) const {
    const auto place = tape_.places.find(a.node());
    if (place == tape_.places.end()) return {a, -1};
    const std::uint32_t at = place->second;
    if (at >= tape_.order.size() || tape_.order[at] != a.node()) return {args_[at], batch_.axes[at]};
    return {steps_[at].outputs[a.index()], steps_[at].out_axes[a.index()]};
  }

 private:
  const detail::Tape& tape_;
  const Arrays& args_;
  const Batch& batch_;
  std::vector<detail::VmapResult> steps_;
};

array placed(const array& made, int axis, std::optional<int> wanted, std::int64_t batch) {
  if (!wanted) {
    if (axis >= 0) refuse("vmap", "a result depends on the batch, but out_axes has no axis for it");
    return made;
  }
  if (axis >= 0) return moveaxis(made, axis, detail::axis_of("vmap", *wanted, made.shape().size()));
  const int at = detail::axis_of("vmap", *wanted, made.shape().size() + 1);
  Shape shape = made.shape();
  shape.insert(shape.begin() + at, 1);
  const array kept = reshape(made, shape);
  shape[static_cast<std::size_t>(at)] = batch;
  return broadcast_to(kept, shape);
}

}  // namespace

ArraysFunction vmap(ArraysFunction fun, BatchAxes in_axes, BatchAxes out_axes) {
  return [fun = std::move(fun), in_axes = std::move(in_axes), out_axes = std::move(out_axes)](const Arrays& args) {
    const Batch batch = batch_of(args, in_axes);
    const detail::TracingScope scope;
    Arrays arguments;
    for (std::size_t i = 0; i < args.size(); ++i) {
      Shape shape = args[i].shape();
      if (batch.axes[i] >= 0) shape.erase(shape.begin() + batch.axes[i]);
      arguments.push_back(detail::placeholder(args[i].dtype(), std::move(shape)));
    }
    const Arrays results = fun(arguments);
    if (!out_axes.empty() && out_axes.size() != results.size()) {
      refuse("vmap", "{} axes are given for {} results", out_axes.size(), results.size());
    }
    const detail::Tape tape = detail::tape_of(results, arguments, false);
    const Rebuilt rebuilt(tape, args, batch);
    Arrays out;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto [made, axis] = rebuilt.of(results[i]);
      out.push_back(placed(made, axis, out_axes.empty() ? std::optional<int>(0) : out_axes[i], batch.size));
    }
    return out;
  };
}

ArrayFunction vmap(ArrayFunction fun, std::optional<int> in_axis, std::optional<int> out_axis) {
  const ArraysFunction one = [fun = std::move(fun)](const Arrays& args) { return Arrays{fun(args.at(0))}; };
  return [many = vmap(one, {in_axis}, {out_axis})](const array& x) { return many({x})[0]; };
}

}  // namespace sdx::array
