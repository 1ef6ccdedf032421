#include "base/system/processes/worker.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/system/fork.h"

namespace sdx {
namespace {

std::string ending_of(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* hint = signal == SIGKILL ? "; perhaps the machine ran out of memory" : "";
  return fmt::format("ended by signal {} ({}){}", signal, ::strsignal(signal), hint);
}

}  // namespace

bool Channel::write(const void* data, std::size_t bytes) const noexcept {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd_, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool Channel::read(void* to, std::size_t bytes) const noexcept {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::read(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

Worker::Worker(const std::function<void(Channel)>& work) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    fail(ErrorCode::io, "cannot make a socket pair: {}", std::strerror(errno));
  }
  id_ = fork_worker();
  if (id_ == 0) {
    ::close(fds[0]);
    work(Channel(fds[1]));
    ::_exit(0);
  }
  const int error = errno;
  ::close(fds[1]);
  if (id_ < 0) {
    ::close(fds[0]);
    fail(ErrorCode::io, "cannot start a process: {}", std::strerror(error));
  }
  fd_ = fds[0];
}

Worker::~Worker() {
  ::close(fd_);
  if (id_ <= 0) return;
  const auto child = static_cast<pid_t>(id_);
  int status = 0;
  for (int i = 0; i < 50; ++i) {
    if (::waitpid(child, &status, WNOHANG) != 0) return;
    ::usleep(20'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

std::string Worker::ended() {
  int status = 0;
  const bool known = id_ > 0 && ::waitpid(static_cast<pid_t>(id_), &status, 0) == id_;
  id_ = -1;
  return known ? ending_of(status) : "is gone";
}

}  // namespace sdx
