#pragma once
// The detector to use where none was named.

#include <filesystem>

namespace sdx::vision::batch {

// Of the models that names find (./sdx.yml, the registry, ~/.sdx/models, ./.sdx), the first that is a detector of faces: YuNet
// before the others, names that speak of faces first. Throws Error(io) that says how to get one.
std::filesystem::path find_detector();

}  // namespace sdx::vision::batch
