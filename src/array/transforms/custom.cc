// Functions with derivative rules of their own, and functions that are computed again for their gradient.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/common.h"
#include "array/transforms/tape.h"

namespace sdx::array {
namespace detail {
namespace {

using Arrays = std::vector<array>;

// What a custom operation holds. Its inputs are the function's arguments, then the function's results, which it passes on.
struct Custom {
  ArraysFunction fun;
  CustomRules rules;
  std::size_t arguments = 0;
};

const Custom& custom_of(const Params& params) { return *static_cast<const Custom*>(params.held.get()); }

void emit_custom(Emitter& e) {
  const std::size_t first = e.num_inputs() - e.num_results();
  for (std::size_t i = 0; i < e.num_results(); ++i) e.result(e.op("Identity", {e.in(first + i)}), i);
}

Arrays arguments_of(const Arrays& inputs, const Custom& custom) {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(custom.arguments)};
}

Arrays custom_vjp(const VjpCall& c) {
  const Custom& custom = custom_of(c.params);
  Arrays of_arguments;
  if (custom.rules.vjp) {
    const Arrays primals = arguments_of(c.inputs, custom);
    of_arguments = custom.rules.vjp(primals, c.of_outputs, c.outputs);
    if (of_arguments.size() != custom.arguments) {
      refuse("custom_function", "its vjp returned {} gradients for {} arguments", of_arguments.size(), custom.arguments);
    }
    for (std::size_t i = 0; i < primals.size(); ++i) {
      if (of_arguments[i].shape() == primals[i].shape()) continue;
      refuse("custom_function", "its vjp returned a gradient of shape {} for an argument of shape {}",
             to_string(of_arguments[i].shape()), to_string(primals[i].shape()));
    }
  }
  Arrays made;
  for (const std::size_t i : c.wanted) {
    if (i >= custom.arguments) {
      made.push_back(c.of_outputs[i - custom.arguments]);
    } else {
      made.push_back(custom.rules.vjp ? as_type(of_arguments[i], c.inputs[i].dtype()) : zeros_of(c.inputs[i]));
    }
  }
  return made;
}

BatchAxes axes_of_arguments(const VmapCall& c, std::size_t count) {
  BatchAxes axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(c.in_axes[i] < 0 ? std::nullopt : std::optional<int>(c.in_axes[i]));
  return axes;
}

// Makes the rules of one element of a batch into rules of the whole batch. Arguments that are not batched get the sum of their
// gradients.
CustomRules rules_for_batches(const CustomRules& rules, const BatchAxes& axes) {
  CustomRules made;
  if (rules.vjp) {
    made.vjp = [rule = rules.vjp, axes](const Arrays& primals, const Arrays& cotangents, const Arrays& outputs) {
      const std::size_t n = primals.size(), m = cotangents.size();
      const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
      const ArraysFunction flat = [&](const Arrays& all) {
        return rule({all.begin(), all.begin() + at(n)}, {all.begin() + at(n), all.begin() + at(n + m)},
                    {all.begin() + at(n + m), all.end()});
      };
      Arrays all = primals;
      all.insert(all.end(), cotangents.begin(), cotangents.end());
      all.insert(all.end(), outputs.begin(), outputs.end());
      BatchAxes in = axes;
      in.resize(all.size(), 0);
      Arrays gradients = vmap(flat, in)(all);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = axes[i] ? moveaxis(gradients[i], 0, *axes[i]) : sum(gradients[i], std::vector<int>{0});
      }
      return gradients;
    };
  }
  if (rules.jvp) {
    made.jvp = [rule = rules.jvp, axes](const Arrays& primals, const Arrays& tangents) {
      const auto n = static_cast<std::ptrdiff_t>(primals.size());
      const ArraysFunction flat = [&](const Arrays& all) {
        return rule({all.begin(), all.begin() + n}, {all.begin() + n, all.end()});
      };
      Arrays all = primals;
      all.insert(all.end(), tangents.begin(), tangents.end());
      BatchAxes in = axes;
      in.insert(in.end(), axes.begin(), axes.end());
      return vmap(flat, in)(all);
    };
  }
  return made;
}

VmapResult custom_vmap(const VmapCall& c) {
  const Custom& custom = custom_of(c.params);
  const Arrays arguments = arguments_of(c.inputs, custom);
  const BatchAxes axes = axes_of_arguments(c, custom.arguments);
  VmapResult result;
  if (custom.rules.vmap) {
    auto [outputs, out_axes] = custom.rules.vmap(arguments, axes);
    if (outputs.size() != out_axes.size() || outputs.size() != c.inputs.size() - custom.arguments) {
      refuse("custom_function", "its vmap returned {} outputs and {} axes; the function has {} results", outputs.size(),
             out_axes.size(), c.inputs.size() - custom.arguments);
    }
    result.outputs = std::move(outputs);
    for (const auto& axis : out_axes) result.out_axes.push_back(axis ? *axis : -1);
    return result;
  }
  const bool none = std::none_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.has_value(); });
  if (none || (!custom.rules.vjp && !custom.rules.jvp)) {
    result.outputs = {c.inputs.begin() + static_cast<std::ptrdiff_t>(custom.arguments), c.inputs.end()};
    result.out_axes = {c.in_axes.begin() + static_cast<std::ptrdiff_t>(custom.arguments), c.in_axes.end()};
    return result;
  }
  result.outputs = custom_function(vmap(custom.fun, axes), rules_for_batches(custom.rules, axes))(arguments);
  result.out_axes.assign(result.outputs.size(), 0);
  return result;
}

const Kind kCustom{.name = "custom_function", .emit = emit_custom, .vjp = custom_vjp, .vmap = custom_vmap};

// Returns the first input, once the second is computed. What follows in a graph is not shared with other uses of the same
// numbers.
void run_after(ops::OpContext& c) { c.set_output(0, c.input(0)); }
void emit_after(Emitter& e) { e.results<run_after>("After", e.inputs()); }

Arrays after_vjp(const VjpCall& c) {
  Arrays made;
  for (const std::size_t i : c.wanted) made.push_back(i == 0 ? c.of_outputs[0] : zeros_of(c.inputs[i]));
  return made;
}

extern const Kind kAfter;
VmapResult after_vmap(const VmapCall& c) {
  const array& a = c.inputs[0];
  return {{make(kAfter, a.dtype(), a.shape(), c.inputs)}, {c.in_axes[0]}};
}
const Kind kAfter{.name = "after", .emit = emit_after, .vjp = after_vjp, .vmap = after_vmap};

}  // namespace

bool is_custom(const Node& node) { return node.kind == &kCustom; }

std::optional<Arrays> custom_jvp(const Node& node, const std::vector<std::optional<array>>& tangents) {
  if (!is_custom(node)) return std::nullopt;
  const Custom& custom = custom_of(node.params);
  if (!custom.rules.jvp) return std::nullopt;
  Arrays known;
  for (std::size_t i = 0; i < custom.arguments; ++i) known.push_back(tangents[i] ? *tangents[i] : zeros_of(node.inputs[i]));
  Arrays made = custom.rules.jvp(arguments_of(node.inputs, custom), known);
  if (made.size() != node.results.size()) {
    refuse("custom_function", "its jvp returned {} tangents for {} results", made.size(), node.results.size());
  }
  return made;
}

}  // namespace detail

ArraysFunction custom_function(ArraysFunction fun, CustomRules rules) {
  return [fun = std::move(fun), rules = std::move(rules)](const std::vector<array>& args) {
    std::vector<array> results = fun(args);
    if (!detail::tracing()) return results;
    auto custom = std::make_shared<detail::Custom>(detail::Custom{fun, rules, args.size()});
    std::vector<array> inputs = args;
    std::vector<std::pair<Dtype, Shape>> types;
    for (const array& r : results) {
      inputs.push_back(rules.vjp ? stop_gradient(r) : r);
      types.emplace_back(r.dtype(), r.shape());
    }
    detail::Params params;
    params.held = std::move(custom);
    return detail::make_many(detail::kCustom, std::move(types), std::move(inputs), std::move(params));
  };
}

ArraysFunction checkpoint(ArraysFunction fun) {
  CustomRules rules;
  rules.vjp = [fun](const std::vector<array>& primals, const std::vector<array>& cotangents, const std::vector<array>&) {
    std::vector<array> later;
    for (const array& p : primals) later.push_back(detail::make(detail::kAfter, p.dtype(), p.shape(), {p, cotangents.at(0)}));
    return vjp(fun, later, cotangents).second;
  };
  return custom_function(std::move(fun), std::move(rules));
}

}  // namespace sdx::array
