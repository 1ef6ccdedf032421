#include "train/step/artifact_files.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace sdx::train {
namespace {

constexpr std::string_view kTraining = "training_model.onnx";

// The file beside the training model that has `name` where that one has kTraining.
std::filesystem::path beside(const std::filesystem::path& artifacts, std::string_view name) {
  const std::filesystem::path training = training_file(artifacts);
  const std::string file = training.filename().string();
  if (!file.ends_with(kTraining)) return {};
  const auto path = training.parent_path() / (file.substr(0, file.size() - kTraining.size()) + std::string(name));
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path training_file(const std::filesystem::path& artifacts) {
  std::error_code none;
  if (!std::filesystem::is_directory(artifacts, none)) return artifacts;
  if (std::filesystem::is_regular_file(artifacts / kTraining, none)) return artifacts / kTraining;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(artifacts, none)) {
    if (entry.path().filename().string().ends_with(kTraining)) found.push_back(entry.path());
  }
  if (found.empty()) {
    fail(ErrorCode::io, "the folder '{}' has no training_model.onnx; generate_artifacts() or `sdx artifacts` creates one",
         artifacts.string());
  }
  if (found.size() > 1) {
    fail(ErrorCode::invalid_argument, "the folder '{}' has several training models; name one of them", artifacts.string());
  }
  return found[0];
}

std::filesystem::path eval_file(const std::filesystem::path& artifacts) { return beside(artifacts, "eval_model.onnx"); }
std::filesystem::path optimizer_file(const std::filesystem::path& artifacts) { return beside(artifacts, "optimizer_model.onnx"); }

}  // namespace sdx::train
