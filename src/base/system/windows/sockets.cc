#include "base/system/network/sockets.h"

// Before <windows.h>, which has an older set of the same functions.
#include <winsock2.h>
#include <ws2tcpip.h>

#include <limits>

#include "base/system/network/socket_text.h"

namespace sdx {

std::string socket_address(SocketHandle socket) {
  sockaddr_storage name{};
  int size = sizeof name;
  if (socket < 0 || ::getsockname(static_cast<SOCKET>(socket), reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  return address_text(name);
}

bool is_loopback(const std::string& address) { return names_this_machine(address); }

// Sockets and files are handles, of which a process may have 16 million.
std::size_t raise_descriptor_limit() { return std::numeric_limits<std::size_t>::max(); }

}  // namespace sdx
