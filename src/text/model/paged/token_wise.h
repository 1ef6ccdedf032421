#pragma once
// Networks that compute each token by itself, attention apart.

#include <string>

#include "graph/graph.h"
#include "text/model/decoder.h"

namespace sdx::text {

// "" where tokens may be of different texts: no operator but sdx PagedAttention takes something of one token to another.
// Otherwise which one does, or may do. Constants are judged by their extents.
std::string why_not_token_wise(const Graph& graph, const DecoderNames& names);

// Adds the input `names.wanted` (int64[wanted]): of the logits [1,T,vocabulary] only these rows are computed. Returns "", or why
// not.
std::string want_rows(Graph& graph, const DecoderNames& names, int opset);

}  // namespace sdx::text
