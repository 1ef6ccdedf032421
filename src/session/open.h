#pragma once
// Sessions for this project's own programs: with what the public options have no place for.

#include <memory>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "plan/profiler.h"

namespace sdx::session {

// Beside the options of a run.
struct RunExtras {
  std::shared_ptr<plan::Profiler> profiler;  // records the run's steps in place of the session's; null: that one does, if any
};

// As Session::run().
SDX_TOOLS_API NamedValues run(const Session& session, const NamedValues& inputs, const RunOptions& options,
                              const RunExtras& extras);

}  // namespace sdx::session
