#include "base/system/network/received.h"

#include <linux/tcp.h>  // the C library's <netinet/tcp.h> has an older tcp_info
#include <netinet/in.h>
#include <sys/socket.h>

namespace sdx {

std::size_t received_bytes(SocketHandle socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (socket < 0 || ::getsockopt(static_cast<int>(socket), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<std::size_t>(info.tcpi_bytes_received);
}

}  // namespace sdx
