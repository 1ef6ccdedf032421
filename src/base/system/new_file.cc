#include "base/system/new_file.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/random_bits.h"
#include "base/text/safe_name.h"

namespace sdx {
namespace {

constexpr std::string_view kTemporary = ".tmp.", kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kRandom = 6;  // letters behind that

// The prefix of temporary files for this name.
std::string temporary_start(const std::filesystem::path& path) {
  return shortened_name(text_of(path.filename()), kLongestName - kTemporary.size() - kRandom).append(kTemporary);
}

}  // namespace

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
  for (int i = 0; i < kTries; ++i) {
    std::string name = temporary_start(path_);
    for (std::size_t k = 0; k < kRandom; ++k) name += kLetters[random_bits() % kLetters.size()];
    temporary_ = path_.parent_path() / path_of(name);
    if (open_temporary(mode)) return;
    if (errno != EEXIST) break;
  }
  temporary_.clear();
  cannot_begin();
}

// Renaming a file over a device or a pipe would replace it for all users.
bool NewFile::open_in_place() {
  const std::optional<FileFacts> there = file_facts(path_);
  if (!there || there->kind == FileFacts::Kind::regular) return false;
  if (there->kind == FileFacts::Kind::folder) fail(ErrorCode::io, "cannot write '{}': it is a folder", path_.string());
  file_ = File::open(path_, File::For::writing);
  if (!file_) io("write");
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
  const std::optional<FileFacts> there = file_facts(path);
  if (!there || there->kind != FileFacts::Kind::other) {
    const NewFile file(path);
  } else if (!may_write(path)) {  // not opened: the reader of a pipe would take closing it for the end
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
  file_ = File::open(temporary_, File::For::making_new, mode);
  if (!file_) return false;
  const bool taken = !file_.lock(File::Lock::exclusive, false) && errno == EWOULDBLOCK;
  const std::optional<FileFacts> facts = file_.facts();
  if (!taken && (!facts || facts->names > 0)) return true;
  file_.close();
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
    const std::string name = text_of(it->path().filename());
    if (name.size() == start.size() + kRandom && name.starts_with(start) &&
        name.find_first_not_of(kLetters, start.size()) == std::string::npos) {
      found.push_back(it->path());
    }
  }
  for (const fs::path& path : found) {
    const File file = File::open(path, File::For::changing_no_link);
    if (file && file.lock(File::Lock::exclusive, false)) remove_file(path);
  }
}

NewFile::~NewFile() {
  file_.close();
  if (!temporary_.empty()) remove_file(temporary_);
}

void NewFile::append(std::span<const std::byte> content) {
  if (!file_.write(content.data(), content.size())) io("write");
}

void NewFile::write(const void* data, std::uint64_t bytes, std::uint64_t offset) const {
  if (!file_.write_at(data, bytes, offset)) io("write");
}

void NewFile::resize(std::uint64_t bytes) const {
  if (!file_.resize(bytes)) io("write");
}

void NewFile::publish() {
  if (temporary_.empty()) {
    if (!file_.close()) io("write");
    return;
  }
  if (!file_.sync()) io("sync");
  if (!file_.close()) io("write");
  if (!rename_over(temporary_, path_)) io("rename a temporary file to");
  temporary_.clear();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content, unsigned mode) {
  NewFile file(path, mode, true);
  file.append(content);
  file.publish();
}

}  // namespace sdx
