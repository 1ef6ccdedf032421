#include "base/system/files/folder_watch.h"

#include <array>
#include <cerrno>
#include <map>
#include <set>

#include "base/system/windows/api.h"

namespace sdx {
namespace {

constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

bool is_folder(const std::filesystem::path& path) noexcept {
  const DWORD found = ::GetFileAttributesW(windows::long_path(path).c_str());
  return found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

// A folder that is watched. The system writes into it until the handle is closed, so it stays in place.
struct Folder {
  std::filesystem::path path;
  HANDLE handle = INVALID_HANDLE_VALUE;
  OVERLAPPED asked{};
  alignas(DWORD) std::array<char, 65536> buffer{};

  bool ask() noexcept {
    ::ResetEvent(asked.hEvent);
    constexpr DWORD kWhat =
        FILE_NOTIFY_CHANGE_FILE_NAME | FILE_NOTIFY_CHANGE_DIR_NAME | FILE_NOTIFY_CHANGE_LAST_WRITE | FILE_NOTIFY_CHANGE_SIZE;
    return ::ReadDirectoryChangesW(handle, buffer.data(), static_cast<DWORD>(buffer.size()), FALSE, kWhat, nullptr, &asked,
                                   nullptr) != 0;
  }

  Folder() = default;
  ~Folder() {
    if (handle != INVALID_HANDLE_VALUE) {
      ::CancelIo(handle);
      DWORD bytes = 0;
      ::GetOverlappedResult(handle, &asked, &bytes, TRUE);
      ::CloseHandle(handle);
    }
    if (asked.hEvent != nullptr) ::CloseHandle(asked.hEvent);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

// Windows does not say when a file is closed: files that have changed are tried until nobody has them open for writing.
struct FolderWatch::State {
  std::map<int, std::unique_ptr<Folder>> folders;
  std::set<std::pair<int, std::filesystem::path>> changed;
  int next = 1;

  // False: the folder is gone.
  bool collect(int number, Folder& folder, std::vector<FolderEvent>& events) {
    DWORD bytes = 0;
    if (::GetOverlappedResult(folder.handle, &folder.asked, &bytes, FALSE) == 0) return ::GetLastError() == ERROR_IO_INCOMPLETE;
    if (bytes == 0) events.push_back({-1, FolderEvent::What::lost, {}});  // more than the buffer holds
    for (std::size_t at = 0; bytes > 0;) {
      const auto* entry = reinterpret_cast<const FILE_NOTIFY_INFORMATION*>(folder.buffer.data() + at);
      const std::filesystem::path name = std::wstring(entry->FileName, entry->FileNameLength / sizeof(WCHAR));
      const bool there = entry->Action != FILE_ACTION_REMOVED && entry->Action != FILE_ACTION_RENAMED_OLD_NAME;
      if (there && !is_folder(folder.path / name)) {
        changed.emplace(number, name);
      } else if (there && entry->Action != FILE_ACTION_MODIFIED) {
        events.push_back({number, FolderEvent::What::folder_made, name});
      }
      if (entry->NextEntryOffset == 0) break;
      at += entry->NextEntryOffset;
    }
    return folder.ask();
  }

  void look(std::vector<FolderEvent>& events) {
    for (auto it = folders.begin(); it != folders.end();) {
      if (collect(it->first, *it->second, events)) {
        ++it;
        continue;
      }
      events.push_back({it->first, FolderEvent::What::gone, {}});
      it = folders.erase(it);
    }
    for (auto it = changed.begin(); it != changed.end();) {
      const auto folder = folders.find(it->first);
      if (folder != folders.end() && is_being_written(folder->second->path / it->second)) {
        ++it;
        continue;
      }
      if (folder != folders.end()) events.push_back({it->first, FolderEvent::What::written, it->second});
      it = changed.erase(it);
    }
  }
};

FolderWatch::FolderWatch() : state_(std::make_unique<State>()) {}
FolderWatch::~FolderWatch() = default;

int FolderWatch::add(const std::filesystem::path& path) {
  for (const auto& [number, folder] : state_->folders) {
    if (folder->path == path) return number;
  }
  auto folder = std::make_unique<Folder>();
  folder->path = path;
  if (!is_folder(path)) {
    errno = ENOENT;
    return -1;
  }
  folder->asked.hEvent = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  folder->handle = ::CreateFileW(windows::long_path(path).c_str(), FILE_LIST_DIRECTORY, kShare, nullptr, OPEN_EXISTING,
                                 FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED, nullptr);
  if (folder->handle == INVALID_HANDLE_VALUE || !folder->ask()) {
    windows::set_errno();
    return -1;
  }
  const int number = state_->next++;
  state_->folders.emplace(number, std::move(folder));
  return number;
}

// The system waits for 64 events at most, so folders are looked at in turn.
std::vector<FolderEvent> FolderWatch::wait(int ms) {
  constexpr int kStep = 20;
  std::vector<FolderEvent> events;
  for (int waited = 0;; waited += kStep) {
    state_->look(events);
    if (!events.empty() || waited >= ms) return events;
    ::Sleep(kStep);
  }
}

// Opening a file without allowing others to write fails while one of them may.
bool is_being_written(const std::filesystem::path& file) noexcept {
  const HANDLE handle = ::CreateFileW(windows::long_path(file).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                      nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return ::GetLastError() == ERROR_SHARING_VIOLATION;
  ::CloseHandle(handle);
  return false;
}

}  // namespace sdx
