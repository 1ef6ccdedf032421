#include "base/system/terminal.h"

#include <fcntl.h>
#include <io.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

HANDLE handle_of(int fd) noexcept { return reinterpret_cast<HANDLE>(::_get_osfhandle(fd)); }

}  // namespace

std::size_t columns_of_terminal(int fd, std::size_t otherwise) noexcept {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  if (::GetConsoleScreenBufferInfo(handle_of(fd), &info) == 0) return otherwise;
  const int columns = info.srWindow.Right - info.srWindow.Left + 1;
  return columns > 0 ? static_cast<std::size_t>(columns) : otherwise;
}

// _isatty() is true for every device, NUL among them.
bool is_terminal(int fd) noexcept {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(fd), &mode) != 0;
}

// TERM is set by programs of POSIX alone.
bool is_steerable_terminal(int fd) noexcept {
  const char* const kind = std::getenv("TERM");
  return (kind == nullptr || std::strcmp(kind, "dumb") != 0) && is_terminal(fd);
}

void prepare_terminal() noexcept {
  for (const int fd : {kInput, kOutput, kErrors}) {
    if (!is_terminal(fd)) ::_setmode(fd, _O_BINARY);
  }
  for (const int fd : {kOutput, kErrors}) {
    DWORD mode = 0;
    if (::GetConsoleMode(handle_of(fd), &mode) == 0) continue;
    ::SetConsoleMode(handle_of(fd), mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    ::SetConsoleOutputCP(CP_UTF8);
  }
}

bool output_arrived() noexcept {
  const int copy = ::_dup(kOutput);
  return copy < 0 || ::_close(copy) == 0;
}

// Writing to a closed pipe is an error, never a signal.
void survive_failing_writes() noexcept {}

int end_by_closed_pipe() noexcept { return 141; }

OutputToErrors::OutputToErrors() {
  std::fflush(stdout);
  kept_ = ::_dup(kOutput);
  if (kept_ >= 0) ::_dup2(kErrors, kOutput);
}

OutputToErrors::~OutputToErrors() {
  if (kept_ < 0) return;
  std::fflush(stdout);
  ::_dup2(kept_, kOutput);
  ::_close(kept_);
}

}  // namespace sdx
