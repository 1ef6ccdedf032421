#pragma once
// What starts services and watches them: systemd, by its documented protocols sd_listen_fds(3) and sd_notify(3). Windows has none
// of these.

#include <chrono>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// The sockets that were passed to this process, in order. May be asked for once: children get none.
SDX_TOOLS_API std::vector<int> inherited_sockets();
// "READY=1", "RELOADING=1", "STOPPING=1", "WATCHDOG=1". Does nothing if no service manager listens.
SDX_TOOLS_API void notify_service_manager(std::string_view state);
// The longest interval between two "WATCHDOG=1" that the service manager accepts; 0: it expects none.
SDX_TOOLS_API std::chrono::microseconds watchdog_interval();

}  // namespace sdx
