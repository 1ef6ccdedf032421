#include "base/system/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace sdx {
namespace {

FileFacts facts_of(const struct stat& info) {
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  FileFacts facts;
  if (S_ISREG(info.st_mode)) facts.kind = FileFacts::Kind::regular;
  if (S_ISDIR(info.st_mode)) facts.kind = FileFacts::Kind::folder;
  facts.names = info.st_nlink;
  facts.mode = info.st_mode & 07777U;
  facts.stamp = {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), ns(info.st_mtim), ns(info.st_ctim)};
  return facts;
}

int flags_of(File::For what) {
  using For = File::For;
  switch (what) {
    case For::reading: return O_RDONLY | O_NONBLOCK;
    case For::writing: return O_WRONLY;
    case For::changing: return O_RDWR | O_NONBLOCK;
    case For::changing_no_link: return O_RDWR | O_NOFOLLOW | O_NONBLOCK;
    case For::making: return O_RDWR | O_CREAT;
    case For::making_no_link: return O_RDWR | O_CREAT | O_NOFOLLOW;
    case For::making_new: return O_RDWR | O_CREAT | O_EXCL;
    case For::appending: return O_WRONLY | O_CREAT | O_APPEND;
    case For::writing_anew: return O_WRONLY | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

}  // namespace

std::optional<FileFacts> file_facts(const std::filesystem::path& path) noexcept {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return facts_of(info);
}

File File::open(const std::filesystem::path& path, For what, unsigned mode) noexcept {
  return File(::open(path.c_str(), flags_of(what) | O_CLOEXEC, mode));
}

std::optional<FileFacts> File::facts() const noexcept {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return std::nullopt;
  return facts_of(info);
}

std::ptrdiff_t File::read(void* to, std::size_t bytes) const noexcept {
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<std::ptrdiff_t>(got);
}

std::ptrdiff_t File::read_at(void* to, std::size_t bytes, std::uint64_t offset) const noexcept {
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(fd_, static_cast<char*>(to) + got, bytes - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<std::ptrdiff_t>(got);
}

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

bool File::write(const void* data, std::size_t bytes) const noexcept { return write_all(fd_, data, bytes); }

bool File::write_at(const void* data, std::size_t bytes, std::uint64_t offset) const noexcept {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd_, at, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

bool File::resize(std::uint64_t bytes) const noexcept { return ::ftruncate(fd_, static_cast<off_t>(bytes)) == 0; }

bool File::touch() const noexcept { return ::futimens(fd_, nullptr) == 0; }

// Some devices have nothing to sync, and say EINVAL.
bool File::sync() const noexcept { return ::fsync(fd_) == 0 || errno == EINVAL; }

bool File::close() noexcept { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

bool File::lock(Lock kind, bool wait) const noexcept {
  const int what = (kind == Lock::shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB);
  while (::flock(fd_, what) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

bool File::unlock() const noexcept { return ::flock(fd_, LOCK_UN) == 0; }

File open_folder_lock(const std::filesystem::path& folder) noexcept {
  return File(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool make_private_folder(const std::filesystem::path& folder) noexcept { return ::mkdir(folder.c_str(), 0700) == 0; }

// Access control lists show in the group's bits.
std::string distrust_of(const std::filesystem::path& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return "";
  const auto mine_or_roots = [&] { return about.st_uid == ::geteuid() || about.st_uid == 0; };
  const auto not_ours = [&](const char* what) {
    return fmt::format("{} '{}' belongs to user {}, not to this one ({}) or root", what, path.string(), about.st_uid,
                       ::geteuid());
  };
  if (S_ISLNK(about.st_mode)) {
    if (!mine_or_roots()) return not_ours("the link");
    if (::stat(path.c_str(), &about) != 0) return "";
  }
  if (!mine_or_roots()) return not_ours(S_ISDIR(about.st_mode) ? "the folder" : "the file");
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  return fmt::format("users other than its owner may write to '{0}' (mode {1:04o}); to use it: chmod go-w '{0}'", path.string(),
                     about.st_mode & 07777U);
}

bool rename_over(const std::filesystem::path& from, const std::filesystem::path& to) noexcept {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool remove_file(const std::filesystem::path& path) noexcept { return ::unlink(path.c_str()) == 0; }

bool may_write(const std::filesystem::path& path) noexcept { return ::access(path.c_str(), W_OK) == 0; }

bool may_make_files_in(const std::filesystem::path& folder) noexcept { return ::access(folder.c_str(), W_OK | X_OK) == 0; }

std::filesystem::path path_of(std::string_view utf8) { return utf8; }

std::string text_of(const std::filesystem::path& path) { return path.string(); }

}  // namespace sdx
