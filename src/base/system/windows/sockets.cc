#include "base/system/network/sockets.h"

// Before <windows.h>, which has an older set of the same functions.
#include <winsock2.h>
#include <ws2tcpip.h>

#include <limits>

namespace sdx {

std::string socket_address(SocketHandle socket) {
  sockaddr_storage name{};
  int size = sizeof name;
  char text[INET6_ADDRSTRLEN] = "";
  if (socket < 0 || ::getsockname(static_cast<SOCKET>(socket), reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  const void* address = name.ss_family == AF_INET6
                            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&name)->sin6_addr)
                            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&name)->sin_addr);
  return ::inet_ntop(name.ss_family, address, text, sizeof text) == nullptr ? "" : text;
}

bool is_loopback(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0;
}

// Sockets and files are handles, of which a process may have 16 million.
std::size_t raise_descriptor_limit() { return std::numeric_limits<std::size_t>::max(); }

}  // namespace sdx
