#pragma once
// The report of a session that has been opened, for logs of that level (-v, SDX_LOG=info).

#include <string>

#include <sdx/session.hpp>

#include "base/log.h"

namespace sdx::session {

// "'m.onnx': 12 nodes on cpu (native); the automatic order of Linux; loaded in 0.3 ms, initialised in 1.9 ms"
std::string opened_text(const std::string& model, const Report& report);

// `report` is called only if the log shows it.
template <class F>
void log_opened(const std::string& model, F&& report) {
  if (log::level() <= log::Level::info) log::info("{}", opened_text(model, report()));
}

}  // namespace sdx::session
