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

}  // namespace sdx
