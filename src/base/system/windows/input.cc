#include "base/system/files/input.h"

#include <io.h>

#include <algorithm>
#include <climits>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

// Pipes cannot be waited for.
InputState wait_for_pipe(HANDLE pipe, DWORD ms) noexcept {
  constexpr DWORD kStep = 5;
  for (DWORD waited = 0;; waited += kStep) {
    DWORD there = 0;
    if (::PeekNamedPipe(pipe, nullptr, 0, nullptr, &there, nullptr) == 0) return InputState::ended;
    if (there > 0) return InputState::ready;
    if (waited >= ms) return InputState::nothing;
    ::Sleep(kStep);
  }
}

}  // namespace

InputState wait_for_input(int descriptor, int ms) noexcept {
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  switch (::GetFileType(handle)) {
    case FILE_TYPE_PIPE: return wait_for_pipe(handle, static_cast<DWORD>(ms));
    case FILE_TYPE_DISK: return InputState::ready;
    case FILE_TYPE_CHAR: break;
    default: return InputState::ended;
  }
  switch (::WaitForSingleObject(handle, static_cast<DWORD>(ms))) {
    case WAIT_OBJECT_0: return InputState::ready;
    case WAIT_TIMEOUT: return InputState::nothing;
    default: return InputState::ended;
  }
}

// The C library takes at most 2 GiB, and says of a pipe whose other end is gone that it has ended.
std::ptrdiff_t read_some(int descriptor, void* to, std::size_t bytes) noexcept {
  return ::_read(descriptor, to, static_cast<unsigned>(std::min<std::size_t>(bytes, INT_MAX)));
}

// The C library would read letters in the console's own code page. Ctrl-Z ends the input, at the start of a line; behind Ctrl-C
// the console gives nothing.
std::optional<std::string> line_of_terminal() {
  constexpr DWORD kPart = 1024;
  constexpr wchar_t kEnd = 0x1A;
  const HANDLE console = ::GetStdHandle(STD_INPUT_HANDLE);
  std::wstring line;
  do {
    wchar_t part[kPart];
    DWORD letters = 0;
    if (::ReadConsoleW(console, part, kPart, &letters, nullptr) == 0 || letters == 0) return std::nullopt;
    line.append(part, letters);
  } while (line.back() != L'\n');
  while (!line.empty() && (line.back() == L'\n' || line.back() == L'\r')) line.pop_back();
  if (line.starts_with(kEnd)) return std::nullopt;
  return windows::narrow(line);
}

}  // namespace sdx
