#pragma once
// Models that are quantised when a session opens them.

#include <sdx/session.hpp>

#include "graph/graph.h"
#include "session/open.h"

namespace sdx::quantize {

// As session::QuantizeModel: products, recurrent layers and attention whose weights are constant compute in 8 bits, with a scale
// for each output channel.
void at_load(Model& model, const SessionOptions& options, const session::InternalOptions& internal);

}  // namespace sdx::quantize
