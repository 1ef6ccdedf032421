#pragma once
// Numbers of the process, as Prometheus' clients name them.

#include "serve/monitor/metrics.h"

namespace sdx::serve {

void watch_process(Metrics& metrics);

}  // namespace sdx::serve
