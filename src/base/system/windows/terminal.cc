#include "base/system/terminal.h"

#include <io.h>

#include <cstdio>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

constexpr int kOut = 1, kErrors = 2;  // descriptors

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

void prepare_terminal() noexcept {
  for (const int fd : {kOut, kErrors}) {
    DWORD mode = 0;
    if (::GetConsoleMode(handle_of(fd), &mode) == 0) continue;
    ::SetConsoleMode(handle_of(fd), mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    ::SetConsoleOutputCP(CP_UTF8);
  }
}

OutputToErrors::OutputToErrors() {
  std::fflush(stdout);
  kept_ = ::_dup(kOut);
  if (kept_ >= 0) ::_dup2(kErrors, kOut);
}

OutputToErrors::~OutputToErrors() {
  if (kept_ < 0) return;
  std::fflush(stdout);
  ::_dup2(kept_, kOut);
  ::_close(kept_);
}

}  // namespace sdx
