#pragma once
// Decides which model files are detectors of faces. Reads a file's declarations, compiles nothing.

#include <filesystem>
#include <sdx/session.hpp>
#include <string_view>

#include "vision/detect/family.h"

namespace sdx::vision {

struct Recognised {
  Family family = Family::yunet;
  ValueSpec input;  // that takes the picture
};

// The family of a model file, or the one that `decoder` names ("": by the outputs). Throws Error(io | invalid_model …) as reading
// a model does, Error(invalid_argument) for a model that is not a detector, with what it has and the decoders known.
Recognised recognise(const std::filesystem::path& model, std::string_view decoder = "");

}  // namespace sdx::vision
