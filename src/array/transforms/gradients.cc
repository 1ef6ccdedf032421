// vjp, jvp, grad, value_and_grad.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/transforms/tape.h"

namespace sdx::array {
namespace {

using detail::refuse;
using Maybe = std::optional<array>;
using Arrays = std::vector<array>;

ArraysFunction as_arrays(ArrayFunction fun) {
  return [fun = std::move(fun)](const Arrays& args) { return Arrays{fun(args.at(0))}; };
}

void same_kind(const char* operation, const char* what, const array& expected, const array& given) {
  if (expected.shape() == given.shape()) return;
  refuse(operation, "a {} of shape {} belongs to an array of shape {}", what, to_string(given.shape()),
         to_string(expected.shape()));
}

Arrays or_zeros(std::vector<Maybe> found, const Arrays& like) {
  Arrays all;
  for (std::size_t i = 0; i < found.size(); ++i) all.push_back(found[i] ? std::move(*found[i]) : detail::zeros_of(like[i]));
  return all;
}

std::vector<std::size_t> numbers_of(const std::vector<int>& argnums, std::size_t count) {
  if (argnums.empty()) refuse("grad", "name at least one argument to differentiate with respect to");
  std::vector<std::size_t> numbers;
  for (const int n : argnums) {
    const auto all = static_cast<int>(count);
    if (n < -all || n >= all) refuse("grad", "argument {} of a function with {}", n, count);
    numbers.push_back(static_cast<std::size_t>(n < 0 ? n + all : n));
  }
  std::vector<std::size_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) refuse("grad", "an argument is given twice");
  return numbers;
}

// Leaves out results of stop_gradient() if there are fewer cotangents than results.
Arrays with_gradient(const Arrays& outputs, std::size_t cotangents) {
  if (outputs.size() == cotangents) return outputs;
  Arrays kept;
  for (const array& a : outputs) {
    const detail::Kind* kind = a.node()->kind;
    if (kind == nullptr || std::string_view(kind->name) != "stop_gradient") kept.push_back(a);
  }
  if (kept.size() != cotangents) refuse("vjp", "{} cotangents for {} results", cotangents, outputs.size());
  return kept;
}

}  // namespace

std::pair<Arrays, Arrays> vjp(const ArraysFunction& fun, const Arrays& primals, const Arrays& cotangents) {
  const detail::TracingScope scope;
  const Arrays arguments = detail::tracers(primals);
  Arrays outputs = fun(arguments);
  const Arrays results = with_gradient(outputs, cotangents.size());
  Arrays cast;
  for (std::size_t i = 0; i < results.size(); ++i) {
    same_kind("vjp", "cotangent", results[i], cotangents[i]);
    cast.push_back(detail::as_type(cotangents[i], results[i].dtype()));
  }
  Arrays gradients = or_zeros(detail::backward(results, cast, arguments), primals);
  return {std::move(outputs), std::move(gradients)};
}

std::pair<array, array> vjp(const ArrayFunction& fun, const array& primal, const array& cotangent) {
  auto [values, gradients] = vjp(as_arrays(fun), {primal}, {cotangent});
  return {values[0], gradients[0]};
}

std::pair<Arrays, Arrays> jvp(const ArraysFunction& fun, const Arrays& primals, const Arrays& tangents) {
  if (primals.size() != tangents.size()) refuse("jvp", "{} tangents for {} primals", tangents.size(), primals.size());
  Arrays cast;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    same_kind("jvp", "tangent", primals[i], tangents[i]);
    cast.push_back(detail::as_type(tangents[i], primals[i].dtype()));
  }
  const detail::TracingScope scope;
  const Arrays arguments = detail::tracers(primals);
  Arrays outputs = fun(arguments);
  Arrays derivatives = or_zeros(detail::forward(outputs, arguments, cast), outputs);
  return {std::move(outputs), std::move(derivatives)};
}

std::pair<array, array> jvp(const ArrayFunction& fun, const array& primal, const array& tangent) {
  auto [values, derivatives] = jvp(as_arrays(fun), {primal}, {tangent});
  return {values[0], derivatives[0]};
}

ValueAndGradFunction value_and_grad(ArraysFunction fun, std::vector<int> argnums) {
  return [fun = std::move(fun), argnums = std::move(argnums)](const Arrays& args) -> std::pair<Arrays, Arrays> {
    const std::vector<std::size_t> numbers = numbers_of(argnums, args.size());
    const detail::TracingScope scope;
    Arrays all = args, arguments;
    for (const std::size_t n : numbers) arguments.push_back(all[n] = detail::tracer(args[n]));
    Arrays outputs = fun(all);
    if (outputs.empty() || outputs[0].size() != 1) {
      refuse("grad", "the function's first result must be a single number, received {}",
             outputs.empty() ? std::string("nothing") : "an array of shape " + to_string(outputs[0].shape()));
    }
    const array one = broadcast_to(array(1, outputs[0].dtype()), outputs[0].shape());
    Arrays gradients = or_zeros(detail::backward({outputs.data(), 1}, {&one, 1}, arguments), arguments);
    return {std::move(outputs), std::move(gradients)};
  };
}

std::function<std::pair<array, array>(const array&)> value_and_grad(ArrayFunction fun) {
  return [both = value_and_grad(as_arrays(std::move(fun)))](const array& x) -> std::pair<array, array> {
    auto [values, gradients] = both({x});
    return {values[0], gradients[0]};
  };
}

ArraysFunction grad(ArraysFunction fun, std::vector<int> argnums) {
  return [both = value_and_grad(std::move(fun), std::move(argnums))](const Arrays& args) { return both(args).second; };
}

ArrayFunction grad(ArrayFunction fun) {
  return [both = value_and_grad(std::move(fun))](const array& x) { return both(x).second; };
}

}  // namespace sdx::array
