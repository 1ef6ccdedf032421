#include "base/system/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

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

// Up to `bytes`; returns how many there were.
std::size_t read_up_to(int fd, const std::filesystem::path& path, void* to, std::size_t bytes) {
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::read(fd, static_cast<char*>(to) + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("read", path);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

FileStamp stamp_of(const struct stat& info) {
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), ns(info.st_mtim), ns(info.st_ctim)};
}

// All open files, by their first byte.
struct OpenFiles {
  std::mutex mutex;
  std::map<const std::byte*, const MappedFile*> by_address;
  std::string damaged;  // the path of one that was closed
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

std::shared_ptr<const MappedFile> MappedFile::holding(const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  OpenFiles& files = open_files();
  const std::lock_guard lock(files.mutex);
  auto it = files.by_address.upper_bound(at);
  if (it == files.by_address.begin()) return nullptr;
  const MappedFile& file = *(--it)->second;
  return at < file.data_ + file.size_ ? file.weak_from_this().lock() : nullptr;
}

std::optional<MappedFile::Place> MappedFile::place_of(const void* data) {
  const std::shared_ptr<const MappedFile> file = holding(data);
  if (file == nullptr) return std::nullopt;
  return Place{file->path_, static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - file->data_)};
}

namespace {

[[noreturn]] void fail_damaged(const std::string& path) {
  fail(ErrorCode::io,
       "'{}' was cut short while in use, or its disk fails: a part of it could not be read. Open it again. To replace a file in "
       "use, write the new one beside it and rename it",
       path);
}

}  // namespace

void MappedFile::check_none_damaged() {
  OpenFiles& files = open_files();
  const std::lock_guard lock(files.mutex);
  if (!files.damaged.empty()) fail_damaged(files.damaged);
  for (const auto& [address, file] : files.by_address) {
    if (file->range_ && file->range_->damaged()) fail_damaged(file->path_.string());
  }
}

void MappedFile::check_unchanged() const {
  if (!mapped_) return;
  if (range_->damaged()) fail_damaged(path_.string());
  const std::optional<FileStamp> now = file_stamp(absolute_);
  if (!now || now->device != stamp_.device || now->inode != stamp_.inode) return;
  if (now->bytes == stamp_.bytes && now->modified_ns == stamp_.modified_ns) return;
  fail(ErrorCode::io,
       "'{}' was written to while in use: it had {} bytes when it was opened and has {} now. Open it again. To replace a file in "
       "use, write the new one beside it and rename it",
       path_.string(), stamp_.bytes, now->bytes);
}

void MappedFile::map(int fd) {
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) fail_io("map", path_);
  data_ = static_cast<const std::byte*>(data);
  range_ = std::make_unique<MappedRange>(data, size_);
  absolute_ = std::filesystem::absolute(path_);
  mapped_ = true;
}

// Begins on a page as a map does: weights are as aligned as they would be there.
void MappedFile::copy(int fd) {
  void* data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) fail_io("take memory for", path_);
  data_ = static_cast<const std::byte*>(data);
  if (read_up_to(fd, path_, data, size_) != size_) fail(ErrorCode::io, "'{}' was cut short while it was read", path_.string());
  ::mprotect(data, size_, PROT_READ);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, std::size_t copied) {
  Descriptor file;
  const struct stat info = open_regular(path, file);
  std::shared_ptr<MappedFile> result(new MappedFile);
  result->path_ = path;
  result->stamp_ = stamp_of(info);
  result->size_ = static_cast<std::size_t>(info.st_size);
  if (result->size_ == 0) return result;
  if (result->size_ <= copied) {
    result->copy(file.fd);
  } else {
    result->map(file.fd);
  }
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
    if (range_ && range_->damaged()) files.damaged = path_.string();
  }
  range_.reset();
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_mapped_pages(const void* data, std::size_t size) noexcept {
  const auto* at = static_cast<const std::byte*>(data);
  {
    OpenFiles& files = open_files();
    const std::lock_guard lock(files.mutex);
    auto it = files.by_address.upper_bound(at);
    if (it == files.by_address.begin()) return;
    const MappedFile& file = *(--it)->second;
    if (!file.is_mapped() || at + size > file.bytes().data() + file.bytes().size()) return;
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t begin = (from + page - 1) / page * page, end = (from + size) / page * page;
  // madvise() takes a pointer to what may be changed; this advice changes nothing.
  if (end > begin) ::madvise(const_cast<std::byte*>(at) + (begin - from), end - begin, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  Descriptor file;
  const struct stat info = open_regular(path, file);
  if (static_cast<std::size_t>(info.st_size) > limit) {
    fail(ErrorCode::io, "'{}' has {} bytes; at most {} are read", path.string(), info.st_size, limit);
  }
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  content.resize(read_up_to(file.fd, path, content.data(), content.size()));
  return content;
}

void read_pieces(const std::filesystem::path& path, const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  Descriptor file;
  open_regular(path, file);
  std::vector<std::byte> piece(kPiece);
  while (const std::size_t n = read_up_to(file.fd, path, piece.data(), kPiece)) take(std::span(piece).first(n));
}

}  // namespace sdx
