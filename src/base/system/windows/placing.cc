#include "base/system/files/placing.h"

#include <atomic>
#include <cerrno>
#include <string>

#include "base/system/process.h"
#include "base/system/windows/api.h"

namespace sdx {

std::error_code remove_locked_folder(const std::filesystem::path& folder, File& lock) noexcept {
  lock.close();
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return error;
}

bool exchange_names(const std::filesystem::path&, const std::filesystem::path&) noexcept {
  errno = ENOTSUP;
  return false;
}

// The view keeps the file, which is removed with its last handle. Making a section longer than the file takes the disk's room.
void* take_disk_memory(std::size_t bytes) noexcept {
  static std::atomic<unsigned> next{0};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  const std::wstring name = L"sdx-memory-" + std::to_wstring(process_id()) + L"-" + std::to_wstring(next++);
  const HANDLE file = ::CreateFileW(windows::long_path(folder / name).c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr,
                                    CREATE_ALWAYS, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (file == INVALID_HANDLE_VALUE) {
    windows::set_errno();
    return nullptr;
  }
  const std::uint64_t size = bytes;
  const HANDLE section =
      ::CreateFileMappingW(file, nullptr, PAGE_READWRITE, static_cast<DWORD>(size >> 32), static_cast<DWORD>(size), nullptr);
  void* const data = section == nullptr ? nullptr : ::MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
  if (data == nullptr) windows::set_errno();
  if (section != nullptr) ::CloseHandle(section);
  ::CloseHandle(file);
  return data;
}

void give_back_disk_memory(void* memory, std::size_t /*bytes*/) noexcept { ::UnmapViewOfFile(memory); }

}  // namespace sdx
