#include "vision/batch/output/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/system/new_file.h"
#include "vision/batch/output/naming.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

std::string key_of(const fs::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return "";
  return fmt::format("{}:{}", s.st_dev, s.st_ino);
}

}  // namespace

AlreadyThere::AlreadyThere(const fs::path& file)
    : Error(ErrorCode::io,
            fmt::format("'{}' already exists: --overwrite replaces it, --resume continues an earlier run", file.string())) {}

void Protected::add(const fs::path& file) {
  const std::string key = key_of(file);
  const std::lock_guard lock(mutex_);
  if (!key.empty()) files_.insert(key);
}

bool Protected::has(const fs::path& file) const {
  const std::string key = key_of(file);
  const std::lock_guard lock(mutex_);
  return !key.empty() && files_.contains(key);
}

OutputFolder::OutputFolder(fs::path folder, bool replace, bool dry, const Protected& inputs)
    : folder_(std::move(folder)), replace_(replace), dry_(dry), inputs_(inputs) {
  if (dry_) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_, error)) {
    fail(ErrorCode::io, "cannot create the folder '{}': {}", folder_.string(), error ? error.message() : "a file has this name");
  }
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) {
    fail(ErrorCode::io, "cannot write to the folder '{}': {}", folder_.string(), std::strerror(errno));
  }
  remove_stale();
}

OutputFolder::~OutputFolder() {
  if (!dry_) ::rmdir((folder_ / kTemporary).c_str());  // fails while another process works there
}

void OutputFolder::remove_stale() const {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(folder_ / kTemporary, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t process = 0;
    std::from_chars(name.data(), name.data() + name.size(), process);
    const bool gone = process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    if (gone || process == ::getpid()) stale.push_back(it->path());
  }
  for (const fs::path& file : stale) fs::remove(file, error);
}

fs::path OutputFolder::claim(const std::string& name, const std::string& owner) {
  fs::path file = folder_ / name;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = owners_.emplace(folded(name), owner);
    if (!fresh && it->second != owner) {
      fail(ErrorCode::io, "'{}' was created from '{}': two pictures cannot have one output; use {{stem}} in --name",
           file.string(), it->second);
    }
    if (!fresh) return file;
  }
  struct stat s {};
  if (::lstat(file.c_str(), &s) != 0) return file;
  if (S_ISDIR(s.st_mode)) fail(ErrorCode::io, "cannot write '{}': a folder has this name", file.string());
  if (inputs_.has(file)) {
    fail(ErrorCode::io, "'{}' is one of the pictures to read: inputs are never replaced; choose another folder or --name",
         file.string());
  }
  if (!replace_) throw AlreadyThere(file);
  return file;
}

void OutputFolder::io(const char* what, const fs::path& file) {
  const int error = errno;
  if (error == ENOSPC || error == EDQUOT || error == EROFS) hopeless_ = true;
  fail(ErrorCode::io, "cannot {} '{}': {}", what, file.string(), std::strerror(error));
}

void OutputFolder::write(const fs::path& file, std::string_view content) {
  const fs::path waiting = folder_ / kTemporary;
  const fs::path temporary = waiting / fmt::format("{}-{}", ::getpid(), next_++);
  int fd = -1;
  for (int tries = 0; tries < 3 && fd < 0; ++tries) {  // another process may remove the empty folder meanwhile
    if (::mkdir(waiting.c_str(), 0777) != 0 && errno != EEXIST) io("make the folder", waiting);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 && errno != ENOENT) break;
  }
  if (fd < 0) io("write", file);
  const bool written = write_all(fd, content.data(), content.size());
  const int write_error = errno;
  const bool closed = ::close(fd) == 0;
  if (!written || !closed) {
    const int error = written ? errno : write_error;
    ::unlink(temporary.c_str());
    errno = error;
    io("write", file);
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) {
    ::unlink(temporary.c_str());
    errno = error.value();
    io("make the folder of", file);
  }
  if (::rename(temporary.c_str(), file.c_str()) == 0) return;
  const int rename_error = errno;
  ::unlink(temporary.c_str());
  errno = rename_error;
  io("write", file);
}

}  // namespace sdx::vision::batch
