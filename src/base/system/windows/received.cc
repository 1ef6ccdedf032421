#include "base/system/network/received.h"

// Windows 10, version 1703; earlier ones refuse the call.
#define NTDDI_VERSION 0x0A000003
#include <winsock2.h>
// after it
#include <mstcpip.h>

namespace sdx {

std::size_t received_bytes(SocketHandle socket) {
  DWORD version = 0, size = 0;
  TCP_INFO_v0 info{};
  if (socket < 0 || ::WSAIoctl(static_cast<SOCKET>(socket), SIO_TCP_INFO, &version, sizeof version, &info, sizeof info, &size,
                               nullptr, nullptr) != 0) {
    return 0;
  }
  return static_cast<std::size_t>(info.BytesIn);
}

}  // namespace sdx
