#include "base/system/file.h"

#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

using windows::set_errno;

constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
// Locks of Windows keep others from what they cover, so they cover a byte that no file has.
constexpr DWORD kLockOffsetHigh = 0x7FFFFFFF;

HANDLE handle_of(int fd) noexcept { return reinterpret_cast<HANDLE>(::_get_osfhandle(fd)); }

std::uint64_t joined(DWORD high, DWORD low) { return std::uint64_t{high} << 32 | low; }

// Nanoseconds since 1970, from steps of 100 since 1601.
std::int64_t unix_ns(std::int64_t steps) { return (steps - 116'444'736'000'000'000) * 100; }

std::optional<FileFacts> facts_of(HANDLE handle) noexcept {
  FileFacts facts;
  if (::GetFileType(handle) != FILE_TYPE_DISK) return facts;
  BY_HANDLE_FILE_INFORMATION info{};
  FILE_BASIC_INFO times{};
  if (::GetFileInformationByHandle(handle, &info) == 0 ||
      ::GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times) == 0) {
    set_errno();
    return std::nullopt;
  }
  const bool folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  facts.kind = folder ? FileFacts::Kind::folder : FileFacts::Kind::regular;
  facts.names = info.nNumberOfLinks;
  facts.mode = (info.dwFileAttributes & FILE_ATTRIBUTE_READONLY) != 0 ? 0444U : 0666U;
  if (folder) facts.mode |= 0111U;
  facts.stamp = {info.dwVolumeSerialNumber, joined(info.nFileIndexHigh, info.nFileIndexLow),
                 joined(info.nFileSizeHigh, info.nFileSizeLow), unix_ns(times.LastWriteTime.QuadPart),
                 unix_ns(times.ChangeTime.QuadPart)};
  return facts;
}

struct Opening {
  DWORD access, disposition, flags;
  int descriptor;  // flags of the C library's
};

Opening opening_of(File::For what) {
  using For = File::For;
  constexpr DWORD kBoth = GENERIC_READ | GENERIC_WRITE;
  switch (what) {
    case For::reading: return {GENERIC_READ, OPEN_EXISTING, 0, _O_RDONLY};
    case For::writing: return {GENERIC_WRITE, OPEN_EXISTING, 0, _O_WRONLY};
    case For::changing: return {kBoth, OPEN_EXISTING, 0, _O_RDWR};
    case For::changing_no_link: return {kBoth, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, _O_RDWR};
    case For::making: return {kBoth, OPEN_ALWAYS, 0, _O_RDWR};
    case For::making_no_link: return {kBoth, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT, _O_RDWR};
    case For::making_new: return {kBoth, CREATE_NEW, 0, _O_RDWR};
    case For::appending: return {FILE_APPEND_DATA | SYNCHRONIZE, OPEN_ALWAYS, 0, _O_WRONLY | _O_APPEND};
    case For::writing_anew: return {GENERIC_WRITE, CREATE_ALWAYS, 0, _O_WRONLY};
  }
  return {GENERIC_READ, OPEN_EXISTING, 0, _O_RDONLY};
}

// Windows says that access is denied.
bool is_folder(const std::filesystem::path& path) noexcept {
  const auto facts = file_facts(path);
  return facts && facts->kind == FileFacts::Kind::folder;
}

// A step of a read or write: the C library takes at most this.
constexpr std::size_t kMost = std::size_t{1} << 30;

// Reads or writes behind an offset, without moving the file's position for others.
template <class Call>
std::ptrdiff_t at_offset(std::size_t bytes, std::uint64_t offset, const Call& call) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    OVERLAPPED where{};
    where.Offset = static_cast<DWORD>((offset + done) & 0xFFFFFFFF);
    where.OffsetHigh = static_cast<DWORD>((offset + done) >> 32);
    DWORD n = 0;
    if (call(done, static_cast<DWORD>(std::min(bytes - done, kMost)), &n, &where) == 0) {
      if (::GetLastError() == ERROR_HANDLE_EOF) break;
      set_errno();
      return -1;
    }
    if (n == 0) break;
    done += n;
  }
  return static_cast<std::ptrdiff_t>(done);
}

// Calls it until it works, or fails for a reason other than that somebody has the file open for a moment: a scanner, an indexer.
template <class Call>
bool retried(const Call& call) noexcept {
  constexpr DWORD kFirstMs = 1, kAllMs = 500;
  for (DWORD waited = 0, next = kFirstMs;; next *= 2) {
    if (call()) return true;
    const DWORD error = ::GetLastError();
    const bool passing = error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED || error == ERROR_LOCK_VIOLATION;
    if (!passing || waited >= kAllMs) {
      set_errno(error);
      return false;
    }
    ::Sleep(next);
    waited += next;
  }
}

}  // namespace

std::optional<FileFacts> file_facts(const std::filesystem::path& path) noexcept {
  const HANDLE handle = ::CreateFileW(windows::long_path(path).c_str(), FILE_READ_ATTRIBUTES, kShare, nullptr, OPEN_EXISTING,
                                      FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return std::nullopt;
  }
  const auto facts = facts_of(handle);
  ::CloseHandle(handle);
  return facts;
}

File File::open(const std::filesystem::path& path, For what, unsigned mode) noexcept {
  const Opening o = opening_of(what);
  const DWORD attributes = (mode & 0200U) == 0 ? FILE_ATTRIBUTE_READONLY : FILE_ATTRIBUTE_NORMAL;
  HANDLE handle = INVALID_HANDLE_VALUE;
  const std::wstring name = windows::long_path(path);
  // A folder is refused at once; otherwise access that is denied may be another's for a moment.
  const bool opened = retried([&] {
    handle = ::CreateFileW(name.c_str(), o.access, kShare, nullptr, o.disposition, attributes | o.flags, nullptr);
    if (handle != INVALID_HANDLE_VALUE) return true;
    if (::GetLastError() == ERROR_ACCESS_DENIED) {
      const DWORD found = ::GetFileAttributesW(name.c_str());
      if (found == INVALID_FILE_ATTRIBUTES || (found & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_READONLY)) != 0) {
        ::SetLastError(ERROR_CANNOT_MAKE);
      } else {
        ::SetLastError(ERROR_ACCESS_DENIED);
      }
    }
    return false;
  });
  if (!opened) {
    if (::GetLastError() == ERROR_CANNOT_MAKE) errno = is_folder(path) ? EISDIR : EACCES;
    // POSIX names a file in the way where Windows finds no path.
    if (errno == ENOENT && path.has_parent_path()) {
      const auto parent = file_facts(path.parent_path());
      errno = parent && parent->kind != FileFacts::Kind::folder ? ENOTDIR : ENOENT;
    }
    return {};
  }
  const int fd = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), o.descriptor | _O_BINARY | _O_NOINHERIT);
  if (fd < 0) ::CloseHandle(handle);
  return File(fd);
}

std::optional<FileFacts> File::facts() const noexcept {
  if (fd_ < 0) {
    errno = EBADF;
    return std::nullopt;
  }
  return facts_of(handle_of(fd_));
}

std::ptrdiff_t File::read(void* to, std::size_t bytes) const noexcept {
  std::size_t got = 0;
  while (got < bytes) {
    const int n = ::_read(fd_, static_cast<char*>(to) + got, static_cast<unsigned>(std::min(bytes - got, kMost)));
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<std::ptrdiff_t>(got);
}

std::ptrdiff_t File::read_at(void* to, std::size_t bytes, std::uint64_t offset) const noexcept {
  return at_offset(bytes, offset, [&](std::size_t done, DWORD most, DWORD* n, OVERLAPPED* where) {
    return ::ReadFile(handle_of(fd_), static_cast<char*>(to) + done, most, n, where);
  });
}

bool write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const int n = ::_write(fd, at, static_cast<unsigned>(std::min(bytes, kMost)));
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool File::write(const void* data, std::size_t bytes) const noexcept { return write_all(fd_, data, bytes); }

bool File::write_at(const void* data, std::size_t bytes, std::uint64_t offset) const noexcept {
  const std::ptrdiff_t done = at_offset(bytes, offset, [&](std::size_t from, DWORD most, DWORD* n, OVERLAPPED* where) {
    return ::WriteFile(handle_of(fd_), static_cast<const char*>(data) + from, most, n, where);
  });
  return done == static_cast<std::ptrdiff_t>(bytes);
}

bool File::resize(std::uint64_t bytes) const noexcept {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  if (::SetFileInformationByHandle(handle_of(fd_), FileEndOfFileInfo, &end, sizeof end) != 0) return true;
  set_errno();
  return false;
}

bool File::touch() const noexcept {
  FILETIME now{};
  ::GetSystemTimeAsFileTime(&now);
  if (::SetFileTime(handle_of(fd_), nullptr, nullptr, &now) != 0) return true;
  set_errno();
  return false;
}

// Pipes and consoles have nothing to sync.
bool File::sync() const noexcept {
  if (::FlushFileBuffers(handle_of(fd_)) != 0 || ::GetFileType(handle_of(fd_)) != FILE_TYPE_DISK) return true;
  set_errno();
  return false;
}

bool File::close() noexcept { return fd_ < 0 || ::_close(std::exchange(fd_, -1)) == 0; }

bool File::lock(Lock kind, bool wait) const noexcept {
  OVERLAPPED where{};
  where.OffsetHigh = kLockOffsetHigh;
  const DWORD flags = (kind == Lock::exclusive ? LOCKFILE_EXCLUSIVE_LOCK : 0U) | (wait ? 0U : LOCKFILE_FAIL_IMMEDIATELY);
  // A lock of POSIX takes the place of the one that the opening has; Windows' would wait for it.
  ::UnlockFileEx(handle_of(fd_), 0, 1, 0, &where);
  if (::LockFileEx(handle_of(fd_), flags, 0, 1, 0, &where) != 0) return true;
  set_errno();
  return false;
}

bool File::unlock() const noexcept {
  OVERLAPPED where{};
  where.OffsetHigh = kLockOffsetHigh;
  return ::UnlockFileEx(handle_of(fd_), 0, 1, 0, &where) != 0 || ::GetLastError() == ERROR_NOT_LOCKED;
}

File open_folder_lock(const std::filesystem::path& folder) noexcept {
  try {
    return File::open(folder / L".folder.lock", File::For::making);
  } catch (const std::exception&) {
    errno = ENOMEM;
    return {};
  }
}

// A folder takes over who may use it from the one that it is in: in a user's profile that is this user.
bool make_private_folder(const std::filesystem::path& folder) noexcept {
  if (::CreateDirectoryW(windows::long_path(folder).c_str(), nullptr) != 0) return true;
  set_errno();
  return false;
}

bool rename_over(const std::filesystem::path& from, const std::filesystem::path& to) noexcept {
  const std::wstring old_name = windows::long_path(from), new_name = windows::long_path(to);
  const auto move = [&](const std::wstring& a, const std::wstring& b) {
    return ::MoveFileExW(a.c_str(), b.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
  };
  if (move(old_name, new_name)) return true;
  // A file that a program has mapped cannot be replaced, but it can be renamed; it goes when the last program closes it.
  if (const auto there = file_facts(to); there && there->kind == FileFacts::Kind::regular) {
    const std::wstring aside =
        new_name + L".old." + std::to_wstring(::GetCurrentProcessId()) + L"." + std::to_wstring(::GetTickCount64());
    if (move(new_name, aside)) {
      if (move(old_name, new_name)) {
        ::DeleteFileW(aside.c_str());
        return true;
      }
      move(aside, new_name);
    }
  }
  return retried([&] { return move(old_name, new_name); });
}

bool remove_file(const std::filesystem::path& path) noexcept {
  const std::wstring name = windows::long_path(path);
  return retried([&] { return ::DeleteFileW(name.c_str()) != 0; });
}

bool may_write(const std::filesystem::path& path) noexcept { return ::_waccess(windows::long_path(path).c_str(), 2) == 0; }

// Only the attempt tells: access control lists are long, and attributes of folders mean something else.
bool may_make_files_in(const std::filesystem::path& folder) noexcept {
  const HANDLE handle = ::CreateFileW(windows::long_path(folder).c_str(), FILE_ADD_FILE, kShare, nullptr, OPEN_EXISTING,
                                      FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return false;
  }
  ::CloseHandle(handle);
  return true;
}

std::filesystem::path path_of(std::string_view utf8) { return windows::wide(utf8); }

std::string text_of(const std::filesystem::path& path) { return windows::narrow(path.native()); }

}  // namespace sdx
