#pragma once
// Models that are quantised when a session opens them.

#include <sdx/session.hpp>

#include "graph/graph.h"
#include "session/open.h"

namespace sdx::quantize {

// A session::QuantizeModel: products, recurrent layers and attention with constant weights compute in 8 bits, with a scale for
// each output channel.
void at_load(Model& model, const SessionOptions& options, const session::InternalOptions& internal);

}  // namespace sdx::quantize
