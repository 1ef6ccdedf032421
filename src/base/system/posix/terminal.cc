#include "base/system/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace sdx {

std::size_t columns_of_terminal(int fd, std::size_t otherwise) noexcept {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

bool is_terminal(int fd) noexcept { return ::isatty(fd) != 0; }

void prepare_terminal() noexcept {}

OutputToErrors::OutputToErrors() {
  std::fflush(stdout);
  kept_ = ::dup(STDOUT_FILENO);
  if (kept_ >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

OutputToErrors::~OutputToErrors() {
  if (kept_ < 0) return;
  std::fflush(stdout);
  ::dup2(kept_, STDOUT_FILENO);
  ::close(kept_);
}

}  // namespace sdx
