#include "vision/detect/finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>

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
    fail(
        ErrorCode::invalid_argument,
        "the model is no detector of faces that can be read: its outputs fit none of the decoders; it has:{}\nknown decoders: {}",
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

std::vector<std::filesystem::path> find_detectors(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) fail(ErrorCode::io, "cannot read the folder '{}': {}", folder.string(), error.message());
  std::vector<std::tuple<Family, bool, std::filesystem::path>> found;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (error) fail(ErrorCode::io, "cannot read the folder '{}': {}", folder.string(), error.message());
    const std::filesystem::path& path = entries->path();
    if (path.extension() != ".onnx") continue;
    try {
      const Recognised r = recognise(path);
      const bool open = std::any_of(r.input.shape.begin(), r.input.shape.end(), [](std::int64_t extent) { return extent < 0; });
      found.emplace_back(r.family, !open, path);
    } catch (const Error&) {  // another kind of model, or none
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [family, fixed, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace sdx::vision
