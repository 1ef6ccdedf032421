#include "base/system/windows/api.h"

#include <cerrno>

namespace sdx::windows {

void set_errno(DWORD error) noexcept {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_MOD_NOT_FOUND: errno = ENOENT; return;
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME: errno = EINVAL; return;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; return;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; return;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
    case ERROR_DELETE_PENDING: errno = EACCES; return;
    case ERROR_WRITE_PROTECT: errno = EROFS; return;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING: errno = EWOULDBLOCK; return;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; return;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: errno = ENOMEM; return;
    case ERROR_TOO_MANY_OPEN_FILES: errno = EMFILE; return;
    case ERROR_INVALID_HANDLE: errno = EBADF; return;
    case ERROR_DIRECTORY: errno = ENOTDIR; return;
    case ERROR_DIR_NOT_EMPTY: errno = ENOTEMPTY; return;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: errno = EPIPE; return;
    case ERROR_NOT_SAME_DEVICE: errno = EXDEV; return;
    case ERROR_INVALID_PARAMETER: errno = EINVAL; return;
    default: errno = EIO; return;
  }
}

std::string words_of(DWORD error) {
  wchar_t* text = nullptr;
  const DWORD letters =
      ::FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                       error, 0, reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  std::string out = narrow({text, letters});
  ::LocalFree(text);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r' || out.back() == ' ' || out.back() == '.')) out.pop_back();
  return out.empty() ? "error " + std::to_string(error) : out;
}

std::wstring wide(std::string_view utf8) {
  const int bytes = static_cast<int>(utf8.size());
  const int letters = ::MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, nullptr, 0);
  std::wstring out(static_cast<std::size_t>(letters), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, out.data(), letters);
  return out;
}

std::string narrow(std::wstring_view utf16) {
  const int letters = static_cast<int>(utf16.size());
  const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, utf16.data(), letters, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(bytes), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, utf16.data(), letters, out.data(), bytes, nullptr, nullptr);
  return out;
}

std::wstring long_path(const std::filesystem::path& path) {
  constexpr std::size_t kShort = 240;  // folders have a limit of 248
  if (path.native().size() < kShort) return path.native();
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  std::wstring name = whole.make_preferred().native();
  if (error || name.starts_with(L"\\\\?\\") || name.starts_with(L"\\\\.\\")) return path.native();
  return name.starts_with(L"\\\\") ? L"\\\\?\\UNC" + name.substr(1) : L"\\\\?\\" + name;
}

}  // namespace sdx::windows
