#pragma once
// The detector to use where none was named.

#include <filesystem>

namespace sdx::vision::batch {

// The first detector of faces among the models that have names (./sdx.yml, the registry, ~/.sdx/models, ./.sdx): YuNet before the
// others, and names that suggest faces first. Throws Error(io) that says how to get one.
std::filesystem::path find_detector();

}  // namespace sdx::vision::batch
