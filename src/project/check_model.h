#pragma once
// A project file against its model.

#include <functional>
#include <string>
#include <vector>

#include <sdx/project.hpp>

namespace sdx::project {

// "FILE:LINE:COLUMN: inputs.x" for "inputs.x".
using PlaceOf = std::function<std::string(const std::string& key)>;

// The model's name for the input (output) that the file calls `name`. If the model has no such name, and file and model have one
// input (output) each, it is the model's. Empty if there is none.
std::string model_name(const std::string& name, std::size_t declared, const std::vector<ValueSpec>& specs);

// Returns warnings about declarations that are odd but work. Throws Error(invalid_argument) for those that cannot work.
std::vector<std::string> check_against_model(const ProjectConfig& config, const std::vector<ValueSpec>& inputs,
                                             const std::vector<ValueSpec>& outputs, const PlaceOf& place);

}  // namespace sdx::project
