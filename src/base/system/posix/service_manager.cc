#include "base/system/network/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace sdx {
namespace {

constexpr int kFirstSocket = 3;
constexpr int kMostSockets = 16;

std::int64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return -1;
  std::int64_t number = -1;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, number);
  return error == std::errc() && at == end ? number : -1;
}

}  // namespace

std::vector<int> inherited_sockets() {
  const std::int64_t count = number_in("LISTEN_FDS");
  const bool ours = number_in("LISTEN_PID") == ::getpid();
  for (const char* variable : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  std::vector<int> sockets;
  if (!ours || count < 1 || count > kMostSockets) return sockets;
  for (int fd = kFirstSocket; fd < kFirstSocket + static_cast<int>(count); ++fd) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) sockets.push_back(fd);
  }
  return sockets;
}

void notify_service_manager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::strlen(path);
  if (size >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, size);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // a name that is not a file
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  static_cast<void>(::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), bytes));
  ::close(fd);
}

std::chrono::microseconds watchdog_interval() {
  const std::int64_t us = number_in("WATCHDOG_USEC");
  const std::int64_t pid = number_in("WATCHDOG_PID");
  if (us <= 0 || (pid >= 0 && pid != ::getpid())) return std::chrono::microseconds(0);
  return std::chrono::microseconds(us);
}

}  // namespace sdx
