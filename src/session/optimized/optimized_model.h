#pragma once
// SessionOptions::optimized_model.

#include <sdx/session.hpp>

#include "graph/graph.h"

namespace sdx::session {

struct InternalOptions;

// Writes a prepared model as the options say; does nothing without SessionOptions::optimized_model. Throws Error(io |
// invalid_argument) naming the file.
void write_optimized_model(const Model& model, const SessionOptions& options, const InternalOptions& internal);

}  // namespace sdx::session
