#pragma once
// Sessions for this project's own programs: with what the public options have no place for.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <variant>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "plan/profiler.h"

namespace sdx::session {

struct ModelBytes {
  std::span<const std::byte> bytes;  // are copied
  std::filesystem::path folder;      // of external data; empty: there are none
};
// A model's file, or its content.
using Source = std::variant<std::filesystem::path, ModelBytes>;

// Beside the options of a session. All that it holds need only live while the session is opened.
struct Extras {
  bool fallbacks_told_elsewhere = false;  // by whoever opens the session: they are in its report only
};

// As Session::open() and Session::from_bytes().
SDX_TOOLS_API Session open(Source source, const SessionOptions& options, const Extras& extras = {});

// Beside the options of a run.
struct RunExtras {
  std::shared_ptr<plan::Profiler> profiler;  // records the run's steps in place of the session's; null: that one does, if any
};

// As Session::run().
SDX_TOOLS_API NamedValues run(const Session& session, const NamedValues& inputs, const RunOptions& options,
                              const RunExtras& extras);

}  // namespace sdx::session
