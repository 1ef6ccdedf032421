#pragma once
// What systemd offers to services, by its documented protocols: sd_listen_fds(3) and sd_notify(3).

#include <chrono>
#include <string_view>
#include <vector>

namespace sdx::serve {

// The sockets that were handed over to this process, in order. Asked for once: children are told of none.
std::vector<int> inherited_sockets();
// "READY=1", "RELOADING=1", "STOPPING=1", "WATCHDOG=1". Does nothing if no service manager listens.
void notify_service_manager(std::string_view state);
// How often the service manager wants "WATCHDOG=1" at the latest; 0: never.
std::chrono::microseconds watchdog_interval();

}  // namespace sdx::serve
