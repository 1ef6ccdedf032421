#include "array/c/operations.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx::array::detail {
namespace {

template <class F>
struct Named {
  std::string_view name;
  F function;
};

using Reduction = array (*)(const array&, const Axes&, bool, StreamOrDevice);
using AlongAxis = array (*)(const array&, std::optional<int>);

const Named<Unary> kUnary[] = {
    {"abs", abs},
    {"arccos", arccos},
    {"arccosh", arccosh},
    {"arcsin", arcsin},
    {"arcsinh", arcsinh},
    {"arctan", arctan},
    {"arctanh", arctanh},
    {"bitwise_invert", bitwise_invert},
    {"ceil", ceil},
    {"conjugate", conjugate},
    {"cos", cos},
    {"cosh", cosh},
    {"degrees", degrees},
    {"erf", erf},
    {"erfinv", erfinv},
    {"exp", exp},
    {"expm1", expm1},
    {"floor", floor},
    {"imag", imag},
    {"isfinite", isfinite},
    {"isinf", isinf},
    {"isnan", isnan},
    {"isneginf", isneginf},
    {"isposinf", isposinf},
    {"log", log},
    {"log10", log10},
    {"log1p", log1p},
    {"log2", log2},
    {"logical_not", logical_not},
    {"negative", negative},
    {"radians", radians},
    {"real", real},
    {"reciprocal", reciprocal},
    {"round", [](const array& a, StreamOrDevice s) { return round(a, 0, s); }},
    {"rsqrt", rsqrt},
    {"sigmoid", sigmoid},
    {"sign", sign},
    {"sin", sin},
    {"sinh", sinh},
    {"sqrt", sqrt},
    {"square", square},
    {"stop_gradient", stop_gradient},
    {"tan", tan},
    {"tanh", tanh},
};

const Named<Binary> kBinary[] = {
    {"add", add},
    {"arctan2", arctan2},
    {"bitwise_and", bitwise_and},
    {"bitwise_or", bitwise_or},
    {"bitwise_xor", bitwise_xor},
    {"divide", divide},
    {"equal", equal},
    {"floor_divide", floor_divide},
    {"greater", greater},
    {"greater_equal", greater_equal},
    {"inner", inner},
    {"kron", kron},
    {"left_shift", left_shift},
    {"less", less},
    {"less_equal", less_equal},
    {"logaddexp", logaddexp},
    {"logical_and", logical_and},
    {"logical_or", logical_or},
    {"logical_xor", logical_xor},
    {"matmul", matmul},
    {"maximum", maximum},
    {"minimum", minimum},
    {"multiply", multiply},
    {"not_equal", not_equal},
    {"outer", outer},
    {"power", power},
    {"remainder", remainder},
    {"right_shift", right_shift},
    {"subtract", subtract},
};

const Named<Reduction> kReductions[] = {
    {"all", all},
    {"any", any},
    {"logsumexp", logsumexp},
    {"max", max},
    {"mean", mean},
    {"median", median},
    {"min", min},
    {"prod", prod},
    {"std", [](const array& a, const Axes& axes, bool keep, StreamOrDevice s) { return std(a, axes, keep, 0, s); }},
    {"sum", sum},
    {"var", [](const array& a, const Axes& axes, bool keep, StreamOrDevice s) { return var(a, axes, keep, 0, s); }},
};

// Operations along one axis, or over the flattened array, with a result for each element.
const Named<AlongAxis> kAlongAxis[] = {
    {"argsort", [](const array& a, std::optional<int> axis) { return argsort(a, axis); }},
    {"cummax", [](const array& a, std::optional<int> axis) { return cummax(a, axis); }},
    {"cummin", [](const array& a, std::optional<int> axis) { return cummin(a, axis); }},
    {"cumprod", [](const array& a, std::optional<int> axis) { return cumprod(a, axis); }},
    {"cumsum", [](const array& a, std::optional<int> axis) { return cumsum(a, axis); }},
    {"logcumsumexp", [](const array& a, std::optional<int> axis) { return logcumsumexp(a, axis); }},
    {"sort", [](const array& a, std::optional<int> axis) { return sort(a, axis); }},
};

template <class List>
auto find(const List& list, std::string_view name) {
  const auto it = std::find_if(std::begin(list), std::end(list), [&](const auto& entry) { return entry.name == name; });
  return it == std::end(list) ? nullptr : it->function;
}

template <class... Lists>
[[noreturn]] void unknown(std::string_view what, std::string_view name, const Lists&... lists) {
  std::vector<std::string> names;
  const auto add_names = [&](const auto& list) {
    for (const auto& entry : list) names.emplace_back(entry.name);
  };
  (add_names(lists), ...);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "'{}' is not an {}{}", name, what,
       near.empty() ? "; known: " + join(names) : "; did you mean '" + near + "'?");
}

std::optional<int> single_axis(std::string_view name, const std::optional<std::vector<int>>& axes) {
  if (!axes) return std::nullopt;
  if (axes->size() != 1) fail(ErrorCode::invalid_argument, "[{}] takes one axis, received {}", name, axes->size());
  return axes->front();
}

}  // namespace

Unary unary_by_name(std::string_view name) {
  if (const Unary found = find(kUnary, name)) return found;
  unknown("operation on one array", name, kUnary);
}

Binary binary_by_name(std::string_view name) {
  if (const Binary found = find(kBinary, name)) return found;
  unknown("operation on two arrays", name, kBinary);
}

array reduce_by_name(std::string_view name, const array& a, const std::optional<std::vector<int>>& axes, bool keep) {
  if (const Reduction found = find(kReductions, name)) return found(a, axes, keep, {});
  if (const AlongAxis found = find(kAlongAxis, name)) return found(a, single_axis(name, axes));
  if (name == "softmax") return softmax(a, axes);
  if (name == "argmax") return argmax(a, single_axis(name, axes), keep);
  if (name == "argmin") return argmin(a, single_axis(name, axes), keep);
  unknown("operation along axes", name, kReductions, kAlongAxis,
          std::initializer_list<Named<int>>{{"argmax", 0}, {"argmin", 0}, {"softmax", 0}});
}

array random_by_name(std::string_view name, Dtype dtype, const Shape& shape, double a, double b) {
  const Dtype bounds = dtype == Dtype::float64 ? dtype : Dtype::float32;
  if (name == "uniform") return random::uniform(array(a, bounds), array(b, bounds), shape, dtype);
  if (name == "normal") return random::normal(shape, dtype, array(a, dtype), array(b, dtype));
  if (name == "randint") {
    return astype(floor(random::uniform(array(a), array(b), shape)), dtype);
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a known distribution; known: uniform, normal, randint", name);
}

}  // namespace sdx::array::detail
