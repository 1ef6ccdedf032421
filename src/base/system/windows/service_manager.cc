#include "base/system/network/service_manager.h"

namespace sdx {

std::vector<int> inherited_sockets() { return {}; }

void notify_service_manager(std::string_view) {}

std::chrono::microseconds watchdog_interval() { return std::chrono::microseconds(0); }

}  // namespace sdx
