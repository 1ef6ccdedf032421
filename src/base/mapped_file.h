#pragma once
// Read-only memory-mapped files.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace sdx {

// The whole file, mapped privately and read-only. Immutable, so safe to share between threads. A file that is truncated
// by somebody else while it is mapped makes later reads fault; model files are expected to be replaced by rename.
class MappedFile {
 public:
  // Throws Error(io): not found, not a regular file, not readable, too large to map.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::filesystem::path path_;
};

// Tells the kernel that the whole pages inside [data, data+size), which must lie in a MappedFile or other file mapping,
// are not needed for now: resident memory falls, and a later read fetches them from the file again. A no-op for less
// than a page.
void release_mapped_pages(const void* data, std::size_t size) noexcept;

// Writes `content` to a temporary file beside `path`, syncs it, and renames it into place: readers see the old file or
// the whole new one. Throws Error(io).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
inline void write_file_atomically(const std::filesystem::path& path, const std::string& content) {
  write_file_atomically(path, std::as_bytes(std::span<const char>(content.data(), content.size())));
}

// The whole file. Throws Error(io), also when it is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 32);

}  // namespace sdx
