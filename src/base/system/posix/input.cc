#include "base/system/files/input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

namespace sdx {

InputState wait_for_input(int descriptor, int ms) noexcept {
  pollfd waiting{descriptor, POLLIN, 0};
  const int found = ::poll(&waiting, 1, ms);
  if (found == 0 || (found < 0 && (errno == EINTR || errno == EAGAIN))) return InputState::nothing;
  if (found < 0 || (waiting.revents & POLLIN) == 0) return InputState::ended;
  return InputState::ready;
}

std::ptrdiff_t read_some(int descriptor, void* to, std::size_t bytes) noexcept { return ::read(descriptor, to, bytes); }

std::optional<std::string> line_of_terminal() {
  std::string line;
  if (!std::getline(std::cin, line)) {
    std::cin.clear();  // a terminal goes on behind a signal, and behind its end
    ::clearerr(stdin);
    return std::nullopt;
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace sdx
