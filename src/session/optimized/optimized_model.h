#pragma once
// SessionOptions::optimized_model.

#include <filesystem>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// Writes a prepared model as the options say; does nothing without SessionOptions::optimized_model. Throws Error(io |
// invalid_argument) naming the file.
SDX_TOOLS_API void write_optimized_model(const Model& model, const SessionOptions& options);

}  // namespace sdx::session
