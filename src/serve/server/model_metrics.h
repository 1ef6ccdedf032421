#pragma once
// Metrics of models, besides those that their interfaces count themselves.

#include "serve/models/catalog.h"
#include "serve/monitor/metrics.h"

namespace sdx::serve {

// States of all models, and the engines of language models; the metrics that vLLM has too are there under its names as well. The
// catalogue must outlive the metrics' use.
void watch_models(Metrics& metrics, const Catalog& catalog);

}  // namespace sdx::serve
