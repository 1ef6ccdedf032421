#pragma once
// The paths of the models in a set of artifacts.

#include <filesystem>

namespace sdx::train {

// `artifacts`: the folder, or the training model's file in it. Throws Error(io) if there is no training model, and
// Error(invalid_argument) for a folder with several.
std::filesystem::path training_file(const std::filesystem::path& artifacts);
// Empty where there is none.
std::filesystem::path eval_file(const std::filesystem::path& artifacts);
std::filesystem::path optimizer_file(const std::filesystem::path& artifacts);

}  // namespace sdx::train
