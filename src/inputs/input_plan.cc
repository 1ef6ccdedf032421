#include "inputs/input_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "inputs/random_input.h"

namespace sdx::inputs {
namespace {

Dimensions with_batch(Dimensions dimensions, const BatchAxis& axis, std::int64_t batch) {
  if (axis.symbol.empty()) return dimensions;
  std::erase_if(dimensions, [&](const auto& d) { return d.first == axis.symbol; });
  dimensions.emplace_back(axis.symbol, batch);
  return dimensions;
}

Value in_batch(const NamedValue& given, bool counts, std::int64_t batch) {
  if (!counts || batch == 0 || !given.value.is_tensor() || given.value.tensor().rank() == 0) return given.value;
  return repeat_rows(given.value.tensor(), batch);
}

// The number of samples of one run: the first extent of the first batch input, if it is open or the input is a picture.
std::int64_t batch_of(const std::vector<ValueSpec>& specs, const BatchAxis& axis, const InputPlan& plan) {
  for (const ValueSpec& s : specs) {
    if (axis.inputs.empty() || s.name != axis.inputs.front()) continue;
    if (axis.fixed >= 0 && s.shape.size() != 4 && !plan.overridden) return 1;
    for (const PlannedInput& i : plan.inputs) {
      if (i.name == s.name && !i.shape.empty()) return std::max<std::int64_t>(1, i.shape[0]);
    }
  }
  return 1;
}

bool made_of_integers(const ValueSpec& spec, const std::vector<std::pair<std::string, Shape>>& shapes) {
  return is_integer(spec.dtype) && std::any_of(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == spec.name; });
}

void check_name(const std::vector<ValueSpec>& specs, const std::string& name) {
  std::vector<std::string> names;
  for (const ValueSpec& s : specs) {
    if (s.name == name) return;
    names.push_back(s.name);
  }
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "the model has no input '{}'{}; inputs: {}", name,
       near.empty() ? "" : ", did you mean '" + near + "'?", join(names));
}

}  // namespace

InputPlan plan_inputs(const std::vector<ValueSpec>& specs, const InputRequest& request) {
  for (const NamedValue& v : request.given) check_name(specs, v.name);
  for (const auto& [name, shape] : request.shapes) check_name(specs, name);
  const std::int64_t batch = request.batch;
  InputPlan plan;
  const BatchAxis axis = find_batch_axis(specs);
  if (batch > 0 && axis.inputs.empty()) {
    fail(ErrorCode::invalid_argument, "the model has no input with a batch axis, so there is no batch size to choose");
  }
  plan.overridden = batch > 0 && axis.fixed >= 0 && axis.fixed != batch;
  if (plan.overridden) {
    plan.notes.push_back(fmt::format("the model declares batch size {}; it was run at {} all the same", axis.fixed, batch));
  }
  std::vector<ChosenExtent> chosen;
  const Dimensions dimensions =
      with_symbols(specs, with_shapes_of(request.given, request.shapes),
                   batch > 0 ? with_batch(request.dimensions, axis, batch) : request.dimensions, &chosen);
  for (const ValueSpec& spec : specs) {
    const bool counts = std::find(axis.inputs.begin(), axis.inputs.end(), spec.name) != axis.inputs.end();
    if (const Value* v = request.given.find(spec.name)) {
      plan.given.add(spec.name, in_batch({spec.name, *v}, counts, batch));
      const Value& value = plan.given.at(spec.name);
      plan.inputs.push_back({spec.name, value.is_tensor() ? std::string(name(value.tensor().dtype())) : value.type_string(),
                             value.is_tensor() ? value.tensor().shape() : Shape{}});
      continue;
    }
    if (spec.has_default || spec.type.starts_with("optional")) continue;
    if (!spec.is_tensor) {
      fail(ErrorCode::invalid_argument, "input '{}' is {}: only tensors can be generated; give its value", spec.name, spec.type);
    }
    Shape shape = concrete_shape(spec, dimensions, &chosen);
    for (const auto& given : request.shapes) {
      if (given.first != spec.name) continue;
      std::erase_if(chosen, [&](const ChosenExtent& c) { return c.input == spec.name; });
      shape = given.second;
    }
    if (counts && batch > 0 && !shape.empty()) shape[0] = batch;
    plan.shapes.emplace_back(spec.name, shape);
    plan.inputs.push_back({spec.name, std::string(name(spec.dtype)), shape});
  }
  plan.batch = batch > 0 ? batch : batch_of(specs, axis, plan);
  const std::string choice = describe(chosen);
  if (!choice.empty()) plan.notes.push_back("the model leaves extents open, chosen: " + choice);
  return plan;
}

IndexBounds bounds_of(const std::filesystem::path& model, const SessionOptions& options, const std::vector<ValueSpec>& specs,
                      const NamedValues& given, const std::vector<std::pair<std::string, Shape>>& shapes) {
  const bool integers = std::any_of(specs.begin(), specs.end(), [&](const ValueSpec& s) { return made_of_integers(s, shapes); });
  if (!integers) return {};
  return index_bounds(model, options, with_shapes_of(given, shapes));
}

std::string made_up_note(const std::vector<ValueSpec>& specs, const std::vector<std::pair<std::string, Shape>>& shapes,
                         const IndexBounds& bounds) {
  std::string names;
  for (const ValueSpec& s : specs) {
    if (!made_of_integers(s, shapes)) continue;
    const auto found = bounds.find(s.name);
    const IntegerRange range = drawn_from(found == bounds.end() ? IntegerRange{} : found->second);
    names += fmt::format("{}'{}' ({} to {})", names.empty() ? "" : ", ", s.name, range.low, range.high);
  }
  if (names.empty()) return "";
  return "with made-up integers for " + names + ": where the model needs others, give them with -i NAME=VALUE";
}

NamedValues with_made_up(const std::vector<ValueSpec>& specs, NamedValues given,
                         const std::vector<std::pair<std::string, Shape>>& shapes, std::uint64_t seed,
                         const IndexBounds& bounds) {
  std::uint64_t stream = seed * 1000003;
  for (const ValueSpec& spec : specs) {
    ++stream;
    const auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == spec.name; });
    if (shape == shapes.end() || given.find(spec.name) != nullptr) continue;
    const DataType dtype = spec.dtype == DataType::undefined ? DataType::float32 : spec.dtype;
    const auto bound = bounds.find(spec.name);
    given.add(spec.name, random_tensor(dtype, shape->second, stream, bound == bounds.end() ? IntegerRange{} : bound->second));
  }
  return given;
}

}  // namespace sdx::inputs
