#include "base/system/network/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <limits>

#include "base/system/network/socket_text.h"

namespace sdx {

std::string socket_address(SocketHandle socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (socket < 0 || ::getsockname(static_cast<int>(socket), reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  return address_text(name);
}

bool is_loopback(const std::string& address) { return names_this_machine(address); }

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::size_t>::max();
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace sdx
