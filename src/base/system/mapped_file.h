#pragma once
// Read-only memory-mapped files.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/tools_api.h"

namespace sdx {

// From now on, what a mapped file no longer has reads as zeros instead of ending the process by SIGBUS, and the file counts as
// damaged: see MappedFile. For programs, which own their signals; a library leaves them to its program. Any other SIGBUS is
// handled as before.
SDX_TOOLS_API void survive_mapped_faults();

// Addresses at which a file is mapped, for as long as this lives.
class MappedRange {
 public:
  MappedRange(const void* begin, std::size_t bytes);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  // A part of it could not be read and reads as zeros now.
  bool damaged() const noexcept;

  struct Place;

 private:
  Place* place_;
};

// What changes when somebody writes to a file. No program can set the time of the last change (ctime) as it likes; it moves with
// each write, rename, and change of the other times.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
// nullopt where there is no regular file.
std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

// The whole file, read-only. Immutable, so safe to share between threads. Small files are copied into memory; larger ones are
// mapped. Whoever writes to a mapped file changes what is read here, and whoever cuts it short makes reading beyond its new end
// kill the process (SIGBUS), or read zeros in programs that call survive_mapped_faults(): files are to be replaced by rename.
// check_unchanged() finds out. Called before reading, it spares all but what is written from then on; called after, all.
class SDX_TOOLS_API MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  // Reading a file costs more than mapping it and looking at each page: 1.8 instead of 0.3 ms for 4 MiB, 9 instead of 1.2 ms for
  // 16 MiB.
  static constexpr std::size_t kCopied = std::size_t{4} << 20;
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  // For open(), as SessionOptions::mmap says.
  static constexpr std::size_t copied(bool mmap) noexcept { return mmap ? kCopied : kAll; }

  // Files of up to `copied` bytes are copied; 0: all are mapped. Throws Error(io): not found, not a regular file, not readable,
  // too large to map, cut short meanwhile.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path, std::size_t copied = kCopied);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }
  const FileStamp& stamp() const noexcept { return stamp_; }
  bool is_mapped() const noexcept { return mapped_; }
  // Throws Error(io) where somebody has written to the mapped file since it was opened, or a part of it could not be read. One
  // that was replaced, or removed, is what it was; so is a copy.
  void check_unchanged() const;
  // Throws the same for any mapped file of this process that could not be read, also one that is closed.
  static void check_none_damaged();

  // Of the files that are open in this process, the one that holds this address; null: none.
  static std::shared_ptr<const MappedFile> holding(const void* data);
  // The same file's path, and the offset there.
  struct Place {
    std::filesystem::path path;
    std::uint64_t offset = 0;
  };
  static std::optional<Place> place_of(const void* data);

 private:
  MappedFile() = default;
  void map(int fd);
  void copy(int fd);

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
  std::filesystem::path path_, absolute_;
  FileStamp stamp_;
  std::unique_ptr<MappedRange> range_;  // of a mapped file
};

// Tells the kernel that the whole pages inside [data, data+size) are not needed for now, where they lie in a mapped file:
// resident memory falls, and a later read fetches them from the file again. Other memory, whose content would be lost, is left
// alone. A no-op for less than a page.
SDX_TOOLS_API void release_mapped_pages(const void* data, std::size_t size) noexcept;

// Writes `content` to a temporary file beside `path`, syncs it, and renames it into place: readers see the old file or
// the whole new one. Throws Error(io).
SDX_TOOLS_API void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content,
                                         unsigned mode = 0666);
inline void write_file_atomically(const std::filesystem::path& path, const std::string& content, unsigned mode = 0666) {
  write_file_atomically(path, std::as_bytes(std::span<const char>(content.data(), content.size())), mode);
}

// The whole file. Throws Error(io), also when it is larger than `limit` bytes.
SDX_TOOLS_API std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 32);

// Hands the whole file to `take`, a megabyte at a time. Read, not mapped: whoever cuts the file short meanwhile does no harm, and
// it may be larger than memory. Throws Error(io).
SDX_TOOLS_API void read_pieces(const std::filesystem::path& path, const std::function<void(std::span<const std::byte>)>& take);

}  // namespace sdx
