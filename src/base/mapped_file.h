#pragma once
// Read-only memory-mapped files.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace sdx {

// What changes when somebody writes to a file. No program can set the time of the last change (ctime) as it likes; it moves with
// each write, rename, and change of the other times.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
// nullopt where there is no regular file.
std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

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
  const FileStamp& stamp() const noexcept { return stamp_; }

  // Of the mapped files that are open in this process, the one that holds this address: its path and the offset there.
  struct Place {
    std::filesystem::path path;
    std::uint64_t offset = 0;
  };
  static std::optional<Place> place_of(const void* data);

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::filesystem::path path_;
  FileStamp stamp_;
};

// Tells the kernel that the whole pages inside [data, data+size) are not needed for now, where they lie in a MappedFile: resident
// memory falls, and a later read fetches them from the file again. Other memory, whose content would be lost, is left alone. A
// no-op for less than a page.
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
