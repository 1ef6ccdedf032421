#include "vision/detect/finder.h"

#include <fmt/format.h>

#include "base/error.h"
#include "onnx/reader.h"
#include "session/specs.h"

namespace sdx::vision {
namespace {

std::vector<ValueSpec> outputs_of(const Graph& graph) {
  std::vector<ValueSpec> specs;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    specs.push_back(session::spec_of(graph.output_names()[i], graph.value(graph.outputs()[i]).declared));
  }
  return specs;
}

Recognised of_specs(std::span<const ValueSpec> inputs, std::span<const ValueSpec> outputs, std::string_view decoder) {
  if (!decoder.empty()) return {family_named(decoder).family, picture_input(inputs)};
  const std::optional<Family> family = recognise(outputs);
  if (!family) {
    fail(ErrorCode::invalid_argument,
         "the model is not a known face detector: its outputs fit none of the decoders; it has:{}\nknown decoders: {}",
         listed(outputs), known_families());
  }
  return {*family, picture_input(inputs)};
}

}  // namespace

Recognised recognise(const std::filesystem::path& path, std::string_view decoder) {
  const Model model = read_model(path);
  try {
    Recognised found = of_specs(session::input_specs(model.graph), outputs_of(model.graph), decoder);
    const std::vector<std::int64_t>& shape = found.input.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      constexpr std::int64_t kLongest = 16384;
      if (shape[axis] == 0 || shape[axis] > kLongest) {
        fail(ErrorCode::invalid_argument, "the input '{}' is declared as {}: extents must be 1 to {}", found.input.name,
             found.input.type, kLongest);
      }
    }
    return found;
  } catch (Error& e) {
    e.add_context(fmt::format("in model '{}'", path.string()));
    throw;
  }
}

}  // namespace sdx::vision
