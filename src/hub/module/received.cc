// Apart from http.cc, because the C library's <netinet/tcp.h>, which cpp-httplib includes, has an older tcp_info.

#include "hub/module/received.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace sdx::hub {

std::size_t received_bytes(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (socket < 0 || ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<std::size_t>(info.tcpi_bytes_received);
}

}  // namespace sdx::hub
