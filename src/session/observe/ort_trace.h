#pragma once
// Profiles as ONNX Runtime writes them.

#include <filesystem>
#include <optional>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"

namespace sdx::session {

// The opening of a session.
struct Opening {
  bool from_file = true;
  double load_ms = 0, init_ms = 0;
};
SDX_TOOLS_API Opening opening_of(const Session& session);

// A list of events with ONNX Runtime's names and keys, in microseconds: "Session" for opening and for each run, "Node" for each
// executed step; viewers of Chrome's traces read it too. Beyond ONNX Runtime's keys, `args` has the step's `kernel` and the
// number of its `run`. Steps number their node_index in the order in which they first ran. thread_scheduling_stats is empty, as
// in ONNX Runtime where its pool keeps none; keys of its memory arena are missing. `opening`: nullopt for the profile of a single
// run.
// Throws Error(io).
SDX_TOOLS_API void write_ort_trace(const std::filesystem::path& path, const std::vector<ProfileEvent>& events,
                                   const std::optional<Opening>& opening);

}  // namespace sdx::session
