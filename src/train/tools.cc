#include "train/tools.h"

namespace sdx::train {
namespace {

CheckpointState load(const std::filesystem::path& path) { return CheckpointState::load(path); }

void save(const CheckpointState& state, const std::filesystem::path& path, bool include_optimizer_state) {
  state.save(path, include_optimizer_state);
}

ArtifactFiles artifacts(const std::filesystem::path& model, const std::filesystem::path& directory,
                        const ArtifactOptions& options) {
  return generate_artifacts(model, directory, options);
}

constexpr Tools kTools = {
    module_head<Tools>(SDX_VERSION), &load, &save, &difference, &sum, &average, &artifacts, &loss_named, &optimizer_named};

}  // namespace
}  // namespace sdx::train

extern "C" SDX_API const sdx::ModuleHead* sdx_train_tools() { return &sdx::train::kTools.head; }
