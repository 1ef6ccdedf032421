#include "base/system/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sdx {

std::size_t columns_of_terminal(int fd, std::size_t otherwise) noexcept {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

bool is_terminal(int fd) noexcept { return ::isatty(fd) != 0; }

bool is_steerable_terminal(int fd) noexcept {
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && std::strcmp(kind, "dumb") != 0 && is_terminal(fd);
}

void prepare_terminal() noexcept {}

bool output_arrived() noexcept {
  const int copy = ::dup(kOutput);
  return copy < 0 || ::close(copy) == 0;
}

void survive_failing_writes() noexcept {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

int end_by_closed_pipe() noexcept {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  return 128 + SIGPIPE;
}

OutputToErrors::OutputToErrors() {
  std::fflush(stdout);
  kept_ = ::dup(kOutput);
  if (kept_ >= 0) ::dup2(kErrors, kOutput);
}

OutputToErrors::~OutputToErrors() {
  if (kept_ < 0) return;
  std::fflush(stdout);
  ::dup2(kept_, kOutput);
  ::close(kept_);
}

}  // namespace sdx
