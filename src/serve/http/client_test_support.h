#pragma once
// For unit tests of servers.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sdx::serve {

// A client that sends arbitrary bytes.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // the server has had enough
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void shut() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // Closes like a client that was killed: the server's next read fails.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  // Until `end` has come, or the connection's end where that is empty.
  std::string receive(std::string_view end = "") {
    char data[4096];
    while (end.empty() || got_.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_, data, sizeof data, 0);
      if (n <= 0) break;
      got_.append(data, static_cast<std::size_t>(n));
    }
    const std::size_t at = end.empty() ? std::string::npos : got_.find(end);
    const std::size_t size = at == std::string::npos ? got_.size() : at + end.size();
    std::string out = got_.substr(0, size);
    got_.erase(0, size);
    return out;
  }

 private:
  int fd_;
  bool connected_ = false;
  std::string got_;
};

}  // namespace sdx::serve
