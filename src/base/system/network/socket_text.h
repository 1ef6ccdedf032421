#pragma once
// Numeric addresses, by functions that POSIX and Windows have under the same names. Included by the two sockets.cc alone, after
// the system's headers of sockets.

#include <string>

#include "base/system/network/sockets.h"

namespace sdx {

inline std::string address_text(const sockaddr_storage& name) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* address = name.ss_family == AF_INET6
                            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&name)->sin6_addr)
                            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&name)->sin_addr);
  return ::inet_ntop(name.ss_family, address, text, sizeof text) == nullptr ? "" : text;
}

inline bool names_this_machine(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0;
}

}  // namespace sdx
