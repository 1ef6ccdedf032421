#pragma once
// What a session says of itself where the log shows that much (-v, SDX_LOG=info).

#include <string>

#include <sdx/session.hpp>

namespace sdx::session {

// "'m.onnx': 12 nodes on cpu (native); the automatic order of Linux; loaded in 0.3 ms, initialised in 1.9 ms"
std::string opened_text(const std::string& model, const Report& report);

}  // namespace sdx::session
