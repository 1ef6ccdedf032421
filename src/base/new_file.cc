#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"

namespace sdx {

bool write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void NewFile::io(const char* what) const {
  const int error = errno;
  fail(ErrorCode::io, "cannot {} '{}': {}", what, path_.string(), std::strerror(error));
}

NewFile::NewFile(std::filesystem::path path, unsigned mode)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp.XXXXXX"), mode_(mode) {
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) io("create a temporary file beside");
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::append(std::span<const std::byte> content) {
  if (!write_all(fd_, content.data(), content.size())) io("write");
}

void NewFile::write(const void* data, std::uint64_t bytes, std::uint64_t offset) const {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd_, at, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) io("write");
    at += n;
    bytes -= static_cast<std::uint64_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
}

void NewFile::resize(std::uint64_t bytes) const {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) io("write");
}

void NewFile::publish() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd_, mode_ & ~mask);
  if (::fsync(fd_) != 0 && errno != EINVAL) io("sync");
  if (::close(std::exchange(fd_, -1)) != 0) io("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) io("rename a temporary file to");
  temporary_.clear();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content, unsigned mode) {
  NewFile file(path, mode);
  file.append(content);
  file.publish();
}

}  // namespace sdx
