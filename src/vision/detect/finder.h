#pragma once
// Which model files are detectors of faces. Reads what a file declares, compiles nothing.

#include <filesystem>
#include <optional>
#include <sdx/session.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vision/detect/family.h"

namespace sdx::vision {

struct Recognised {
  Family family = Family::yunet;
  ValueSpec input;  // that takes the picture
};

// The family of a model file, or the one that `decoder` names ("": by the outputs). Throws Error(io | invalid_model …) as reading
// a model does, Error(invalid_argument) for a model that is no detector, with what it has and the decoders known.
Recognised recognise(const std::filesystem::path& model, std::string_view decoder = "");

// The .onnx files in a folder, not in those below it, that recognise() takes, by name: the families in the order of families(),
// models that take any extents first. Files that cannot be read are left out. Throws Error(io) where the folder cannot be read.
std::vector<std::filesystem::path> find_detectors(const std::filesystem::path& folder);

}  // namespace sdx::vision
