#include "base/system/files/placing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace sdx {

std::error_code remove_locked_folder(const std::filesystem::path& folder, File& lock) noexcept {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  lock.close();
  return error;
}

// By the number of the system call, because musl has no function for it.
bool exchange_names(const std::filesystem::path& a, const std::filesystem::path& b) noexcept {
  constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE
  return ::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), kExchange) == 0;
}

void* take_disk_memory(std::size_t bytes) noexcept {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "sdx-memory-XXXXXX").string();
  if (error) {
    errno = error.value();
    return nullptr;
  }
  const int fd = ::mkstemp(name.data());
  if (fd < 0) return nullptr;
  ::unlink(name.c_str());
  // Without this, a page for which the disk has no room would end the process when it is written to.
  const int refused = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* const data = refused == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int kept = refused == 0 ? errno : refused;
  ::close(fd);
  errno = kept;
  return data == MAP_FAILED ? nullptr : data;
}

void give_back_disk_memory(void* memory, std::size_t bytes) noexcept { ::munmap(memory, bytes); }

}  // namespace sdx
