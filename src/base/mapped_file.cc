#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace sdx {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail_io(const char* what, const std::filesystem::path& path) {
  const int error = errno;
  fail(ErrorCode::io, "cannot {} '{}': {}", what, path.string(), std::strerror(error));
}

struct stat open_regular(const std::filesystem::path& path, Descriptor& file) {
  // O_NONBLOCK: opening a FIFO must not hang.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) fail_io("open", path);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_io("stat", path);
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::io, "cannot read '{}': not a regular file", path.string());
  return info;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  Descriptor file;
  const struct stat info = open_regular(path, file);
  std::shared_ptr<MappedFile> result(new MappedFile);
  result->path_ = path;
  result->size_ = static_cast<std::size_t>(info.st_size);
  if (result->size_ == 0) return result;
  void* data = ::mmap(nullptr, result->size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    result->size_ = 0;
    fail_io("map", path);
  }
  result->data_ = static_cast<const std::byte*>(data);
  return result;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_mapped_pages(const void* data, std::size_t size) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + size) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content) {
  std::string temporary = path.string() + ".tmp.XXXXXX";
  Descriptor file;
  file.fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file.fd < 0) fail_io("create a temporary file beside", path);
  const auto abandon = [&](const char* what) {
    const int error = errno;
    ::unlink(temporary.c_str());
    errno = error;
    fail_io(what, path);
  };
  const std::byte* data = content.data();
  std::size_t left = content.size();
  while (left > 0) {
    const ssize_t n = ::write(file.fd, data, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) abandon("write");
    data += n;
    left -= static_cast<std::size_t>(n);
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.fd, 0666 & ~mask);
  if (::fsync(file.fd) != 0 && errno != EINVAL) abandon("sync");
  if (::rename(temporary.c_str(), path.c_str()) != 0) abandon("rename a temporary file to");
}

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  Descriptor file;
  const struct stat info = open_regular(path, file);
  if (static_cast<std::size_t>(info.st_size) > limit) {
    fail(ErrorCode::io, "'{}' has {} bytes; at most {} are read", path.string(), info.st_size, limit);
  }
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t got = 0;
  while (got < content.size()) {
    const ssize_t n = ::read(file.fd, content.data() + got, content.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("read", path);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  content.resize(got);
  return content;
}

}  // namespace sdx
