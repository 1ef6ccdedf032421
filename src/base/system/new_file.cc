#include "base/system/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"

namespace sdx {
namespace {

constexpr std::string_view kTemporary = ".tmp.", kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kRandom = 6;  // letters behind that

// The prefix of temporary files for this name.
std::string temporary_start(const std::filesystem::path& path) {
  return shortened_name(path.filename().string(), kLongestName - kTemporary.size() - kRandom).append(kTemporary);
}

}  // namespace

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

// mkostemp() would make files that only their owner may read. The process's mask, which open() applies, can be read only by
// setting it, and other threads would make folders meanwhile that everybody may write to.
NewFile::NewFile(std::filesystem::path path, unsigned mode, bool one_of_many) : path_(std::move(path)) {
  if (open_in_place()) return;
  if (!one_of_many) remove_abandoned();
  constexpr int kTries = 100;
  std::random_device random;
  for (int i = 0; i < kTries; ++i) {
    temporary_ = (path_.parent_path() / temporary_start(path_)).string();
    for (std::size_t k = 0; k < kRandom; ++k) temporary_ += kLetters[random() % kLetters.size()];
    if (open_temporary(mode)) return;
    if (errno != EEXIST) break;
  }
  temporary_.clear();
  cannot_begin();
}

// Renaming a file over a device or a pipe would replace it for all users.
bool NewFile::open_in_place() {
  struct stat s {};
  if (::stat(path_.c_str(), &s) != 0 || S_ISREG(s.st_mode)) return false;
  if (S_ISDIR(s.st_mode)) fail(ErrorCode::io, "cannot write '{}': it is a folder", path_.string());
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0) io("write");
  return true;
}

// The system's message names a temporary file; the actual cause is usually the folder.
void NewFile::cannot_begin() const {
  const int error = errno;
  const std::filesystem::path folder = path_.parent_path();
  std::error_code ignored;
  if (error == ENOENT && !folder.empty() && !std::filesystem::exists(folder, ignored)) {
    fail(ErrorCode::io, "cannot write '{}': there is no folder '{}'", path_.string(), folder.string());
  }
  if (error == ENOTDIR) fail(ErrorCode::io, "cannot write '{}': '{}' is not a folder", path_.string(), folder.string());
  errno = error;
  io("write");
}

void NewFile::check(const std::filesystem::path& path) {
  struct stat s {};
  const bool other = ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
  if (!other) {
    const NewFile file(path);
  } else if (::access(path.c_str(), W_OK) != 0) {  // not opened: the reader of a pipe would take closing it for the end
    fail(ErrorCode::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
  }
}

std::filesystem::path nearest_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  while (!std::filesystem::exists(folder, ignored) && folder.has_parent_path()) folder = folder.parent_path();
  return std::filesystem::exists(folder, ignored) ? folder : std::filesystem::path(".");
}

void NewFile::check_with_folders(const std::filesystem::path& path) {
  const std::filesystem::path folder = nearest_folder(path);
  check(folder == path.parent_path() ? path : folder / path.filename());
}

// The lock shows that a process is writing it. remove_abandoned() may intervene: EEXIST, so that another name is tried.
bool NewFile::open_temporary(unsigned mode) {
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd_ < 0) return false;
  struct stat s {};
  const bool taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!taken && (::fstat(fd_, &s) != 0 || s.st_nlink > 0)) return true;
  ::close(std::exchange(fd_, -1));
  errno = EEXIST;
  return false;
}

void NewFile::remove_abandoned() const {
  namespace fs = std::filesystem;
  const std::string start = temporary_start(path_);
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() == start.size() + kRandom && name.starts_with(start) &&
        name.find_first_not_of(kLetters, start.size()) == std::string::npos) {
      found.push_back(it->path());
    }
  }
  for (const fs::path& file : found) {
    const int fd = ::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(file.c_str());
    ::close(fd);
  }
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
  if (temporary_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0) io("write");
    return;
  }
  if (::fsync(fd_) != 0 && errno != EINVAL) io("sync");
  if (::close(std::exchange(fd_, -1)) != 0) io("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) io("rename a temporary file to");
  temporary_.clear();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content, unsigned mode) {
  NewFile file(path, mode, true);
  file.append(content);
  file.publish();
}

}  // namespace sdx
