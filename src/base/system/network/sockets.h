#pragma once
// Facts of sockets and of numeric addresses, by each system's own calls.

#include <cstddef>
#include <string>

#include "base/system/network/received.h"
#include "base/tools_api.h"

namespace sdx {

// The numeric address of a socket's own end, as "127.0.0.1" or "::1"; empty where it has none.
SDX_TOOLS_API std::string socket_address(SocketHandle socket);

// Whether a numeric address is one of this machine alone: of 127.0.0.0/8, or ::1.
SDX_TOOLS_API bool is_loopback(const std::string& address);

// Lets this process open as many files and sockets as the system allows it, and returns how many; SIZE_MAX without a limit.
SDX_TOOLS_API std::size_t raise_descriptor_limit();

}  // namespace sdx
