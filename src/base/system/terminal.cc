#include "base/system/terminal.h"

#include <sys/ioctl.h>

namespace sdx {

std::size_t columns_of_terminal(int fd, std::size_t otherwise) noexcept {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

}  // namespace sdx
