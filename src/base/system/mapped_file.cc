#include "base/system/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/system/pages.h"

namespace sdx {
namespace {

[[noreturn]] void fail_io(const char* what, const std::filesystem::path& path) {
  const int error = errno;
  fail(ErrorCode::io, "cannot {} '{}': {}", what, path.string(), std::strerror(error));
}

FileStamp open_regular(const std::filesystem::path& path, File& file) {
  file = File::open(path, File::For::reading);
  if (!file && errno != EISDIR) fail_io("open", path);
  const std::optional<FileFacts> facts = file ? file.facts() : file_facts(path);
  if (!facts) fail_io("stat", path);
  if (facts->kind != FileFacts::Kind::regular) fail(ErrorCode::io, "cannot read '{}': not a regular file", path.string());
  return facts->stamp;
}

// Up to `bytes`; returns how many there were.
std::size_t read_up_to(const File& file, const std::filesystem::path& path, void* to, std::size_t bytes) {
  const std::ptrdiff_t got = file.read(to, bytes);
  if (got < 0) fail_io("read", path);
  return static_cast<std::size_t>(got);
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
  const std::optional<FileFacts> facts = file_facts(path);
  if (!facts || facts->kind != FileFacts::Kind::regular) return std::nullopt;
  return facts->stamp;
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

void MappedFile::map(const File& file) {
  const void* const data = map_file(file, size_);
  if (data == nullptr) fail_io("map", path_);
  data_ = static_cast<const std::byte*>(data);
  range_ = std::make_unique<MappedRange>(data, size_);
  absolute_ = std::filesystem::absolute(path_);
  mapped_ = true;
}

// Begins on a page as a map does: weights are as aligned as they would be there.
void MappedFile::copy(const File& file) {
  void* const data = take_pages(size_, true);
  if (data == nullptr) fail_io("take memory for", path_);
  data_ = static_cast<const std::byte*>(data);
  if (read_up_to(file, path_, data, size_) != size_) fail(ErrorCode::io, "'{}' was cut short while it was read", path_.string());
  make_read_only(data, size_);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, std::size_t copied) {
  File file;
  std::shared_ptr<MappedFile> result(new MappedFile);
  result->path_ = path;
  result->stamp_ = open_regular(path, file);
  result->size_ = static_cast<std::size_t>(result->stamp_.bytes);
  if (result->size_ == 0) return result;
  if (result->size_ <= copied) {
    result->copy(file);
  } else {
    result->map(file);
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
  if (mapped_) {
    unmap_file(data_, size_);
  } else {
    give_back_pages(const_cast<std::byte*>(data_), size_);
  }
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
  release_file_pages(at, size);
}

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  File file;
  const std::uint64_t bytes = open_regular(path, file).bytes;
  if (bytes > limit) fail(ErrorCode::io, "'{}' has {} bytes; at most {} are read", path.string(), bytes, limit);
  std::string content(static_cast<std::size_t>(bytes), '\0');
  content.resize(read_up_to(file, path, content.data(), content.size()));
  return content;
}

void read_pieces(const std::filesystem::path& path, const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  File file;
  open_regular(path, file);
  std::vector<std::byte> piece(kPiece);
  while (const std::size_t n = read_up_to(file, path, piece.data(), kPiece)) take(std::span(piece).first(n));
}

}  // namespace sdx
