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

#include "base/system/file.h"
#include "base/tools_api.h"

namespace sdx {

// After this call, missing parts of a mapped file read as zeros instead of ending the process by SIGBUS, and the file counts as
// damaged: see MappedFile. For programs, which own their signals; a library leaves the choice to its program. Any other SIGBUS is
// handled as before.
SDX_TOOLS_API void survive_mapped_faults();

// Addresses at which a file is mapped, for as long as this lives.
class MappedRange {
 public:
  MappedRange(const void* begin, std::size_t bytes);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  // Whether a part of it could not be read and reads as zeros.
  bool damaged() const noexcept;

  struct Place;

 private:
  Place* place_;
};

// The whole file, read-only and immutable, so safe to share between threads. Small files are copied into memory; larger ones are
// mapped. If a mapped file is overwritten, its contents here change; if it is truncated, reading beyond its new end kills the
// process (SIGBUS), or returns zeros in programs that call survive_mapped_faults(). Files should therefore be replaced by rename.
// check_unchanged() detects both: called before reading, it covers all earlier writes; called afterwards, all writes until then.
class SDX_TOOLS_API MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  // Reading a file costs more than mapping it and looking at each page: 1.8 instead of 0.3 ms for 4 MiB, 9 instead of 1.2 ms for
  // 16 MiB.
  static constexpr std::size_t kCopied = std::size_t{4} << 20;
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  // The limit for open() that SessionOptions::mmap implies.
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
  // Throws Error(io) if the mapped file was written to since it was opened, or a part of it could not be read. A replaced or
  // removed file keeps its contents, and so does a copy.
  void check_unchanged() const;
  // Throws the same for any mapped file of this process that could not be read, also one that is closed.
  static void check_none_damaged();

  // The open file of this process that holds this address; null: none.
  static std::shared_ptr<const MappedFile> holding(const void* data);
  // The same file's path, and the offset there.
  struct Place {
    std::filesystem::path path;
    std::uint64_t offset = 0;
  };
  static std::optional<Place> place_of(const void* data);

 private:
  MappedFile() = default;
  void map(const File& file);
  void copy(const File& file);

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
  std::filesystem::path path_, absolute_;
  FileStamp stamp_;
  std::unique_ptr<MappedRange> range_;  // of a mapped file
};

// Tells the kernel that the whole pages inside [data, data+size) are not needed for now, if they lie in a mapped file: resident
// memory falls, and a later read fetches them from the file again. Other memory, whose content would be lost, is left alone. Does
// nothing for less than a page.
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

// Passes the whole file to `take`, a megabyte at a time. The file is read, not mapped: truncating it meanwhile does no harm, and
// it may be larger than memory. Throws Error(io).
SDX_TOOLS_API void read_pieces(const std::filesystem::path& path, const std::function<void(std::span<const std::byte>)>& take);

}  // namespace sdx
