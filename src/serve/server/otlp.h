#pragma once
// Spans to a collector.

#include <functional>
#include <string>
#include <vector>

#include "serve/monitor/trace.h"

namespace sdx::serve {

// A sender for a SpanExporter: posts batches to `url` ("http://host:4318"; without a path, to /v1/traces). Throws
// Error(invalid_argument) for an invalid address.
std::function<bool(const std::vector<Span>&)> otlp_sender(const std::string& url);

}  // namespace sdx::serve
