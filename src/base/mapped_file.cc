#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

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

FileStamp stamp_of(const struct stat& info) {
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), ns(info.st_mtim), ns(info.st_ctim)};
}

// All mapped files, by their first byte.
struct OpenFiles {
  std::mutex mutex;
  std::map<const std::byte*, const MappedFile*> by_address;
};

OpenFiles& open_files() {
  static OpenFiles* const files = new OpenFiles;  // never destroyed: sessions may outlive static objects
  return *files;
}

}  // namespace

std::optional<FileStamp> file_stamp(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return stamp_of(info);
}

std::optional<MappedFile::Place> MappedFile::place_of(const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  OpenFiles& files = open_files();
  const std::lock_guard lock(files.mutex);
  auto it = files.by_address.upper_bound(at);
  if (it == files.by_address.begin()) return std::nullopt;
  const MappedFile& file = *(--it)->second;
  if (at >= file.data_ + file.size_) return std::nullopt;
  return Place{file.path_, static_cast<std::uint64_t>(at - file.data_)};
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  Descriptor file;
  const struct stat info = open_regular(path, file);
  std::shared_ptr<MappedFile> result(new MappedFile);
  result->path_ = path;
  result->stamp_ = stamp_of(info);
  result->size_ = static_cast<std::size_t>(info.st_size);
  if (result->size_ == 0) return result;
  void* data = ::mmap(nullptr, result->size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    result->size_ = 0;
    fail_io("map", path);
  }
  result->data_ = static_cast<const std::byte*>(data);
  OpenFiles& files = open_files();
  const std::lock_guard lock(files.mutex);
  files.by_address.emplace(result->data_, result.get());
  return result;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  {
    OpenFiles& files = open_files();
    const std::lock_guard lock(files.mutex);
    files.by_address.erase(data_);
  }
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_mapped_pages(const void* data, std::size_t size) noexcept {
  const auto* at = static_cast<const std::byte*>(data);
  {
    OpenFiles& files = open_files();
    const std::lock_guard lock(files.mutex);
    auto it = files.by_address.upper_bound(at);
    if (it == files.by_address.begin()) return;
    const std::span<const std::byte> bytes = (--it)->second->bytes();
    if (at + size > bytes.data() + bytes.size()) return;
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(at) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(at) + size) / page * page;
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
