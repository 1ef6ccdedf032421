#pragma once

#include <vector>

#include "cli/doctor/facts.h"

namespace sdx::cli::doctor {

// Every library that an installation may have beside the engine, in the order of the report.
std::vector<Part> look_at_parts();

CacheFacts look_at_cache();
ModelFacts look_at_models();
ProjectFacts look_at_project();
HubFacts look_at_hub();

}  // namespace sdx::cli::doctor
