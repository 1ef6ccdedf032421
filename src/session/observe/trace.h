#pragma once
// Reports and traces.

#include <filesystem>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"

#include "plan/program.h"

namespace sdx::session {

// Adds the program's steps, those of subgraphs under "node/branch/…", to the report.
void append_steps(const plan::Program& program, const std::string& prefix, Report& report);

// Chrome trace event format ("Trace Event Format", complete events, microseconds). Throws Error(io).
SDX_TOOLS_API void write_chrome_trace(const std::filesystem::path& path, const std::vector<ProfileEvent>& events);

}  // namespace sdx::session
