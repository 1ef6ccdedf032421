#pragma once
// Files of the system: opening, reading, writing, locking, replacing. What fails leaves its reason in errno, on every system.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/tools_api.h"

namespace sdx {

// Values that change when a file is written to. No program can set the time of the last change (ctime) at will; it advances with
// each write, rename, and change of the other times.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

struct FileFacts {
  enum class Kind { regular, folder, other };  // other: a pipe, a terminal, a device
  Kind kind = Kind::other;
  std::uint64_t names = 0;  // hard links; 0: the file was removed while it was open
  unsigned mode = 0;        // permissions as on POSIX
  FileStamp stamp;
};

// Of what the path leads to; nullopt: nothing that can be looked at.
SDX_TOOLS_API std::optional<FileFacts> file_facts(const std::filesystem::path& path) noexcept;
// The same if that is a regular file.
SDX_TOOLS_API std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

// An open file. On Windows others may read, write, rename and remove it meanwhile, as on POSIX.
class SDX_TOOLS_API File {
 public:
  enum class For {
    reading,           // what is there; never waits for the other end of a pipe
    writing,           // what is there: a pipe, a terminal
    changing,          // what is there, for reading and writing
    changing_no_link,  // the same; a link is refused
    making,            // for reading and writing; made if it is not there
    making_no_link,    // the same; a link is refused
    making_new,        // the same; EEXIST if it is there
    appending,         // each write goes to the end; made if it is not there
    writing_anew,      // emptied, or made
  };

  File() = default;
  // Not open, with errno, where that cannot be done. `mode`: the permissions of a new file, reduced by the process's mask.
  static File open(const std::filesystem::path& path, For what, unsigned mode = 0666) noexcept;
  // Takes a descriptor of the C library over.
  explicit File(int descriptor) noexcept : fd_(descriptor) {}
  ~File() { close(); }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int descriptor() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  std::optional<FileFacts> facts() const noexcept;
  // Sets the time of its last change to this moment.
  bool touch() const noexcept;

  // Up to `bytes`, fewer only at the end; -1: failed.
  std::ptrdiff_t read(void* to, std::size_t bytes) const noexcept;
  std::ptrdiff_t read_at(void* to, std::size_t bytes, std::uint64_t offset) const noexcept;
  // All of it.
  bool write(const void* data, std::size_t bytes) const noexcept;
  bool write_at(const void* data, std::size_t bytes, std::uint64_t offset) const noexcept;
  // What is new reads as zeros.
  bool resize(std::uint64_t bytes) const noexcept;
  // Once this returns true, what was written survives a power failure.
  bool sync() const noexcept;
  bool close() noexcept;

  enum class Lock { shared, exclusive };
  // Between processes, and between two openings of the file in one; it ends with the opening. Nobody is kept from reading or
  // writing. False with EWOULDBLOCK where another one has it and `wait` is false.
  bool lock(Lock kind, bool wait) const noexcept;
  bool unlock() const noexcept;

 private:
  int fd_ = -1;
};

// Something to lock() that stands for the folder: on POSIX the folder itself, on Windows, which locks files only, a file in it.
SDX_TOOLS_API File open_folder_lock(const std::filesystem::path& folder) noexcept;

// Makes a folder that this user alone may use. False with errno, EEXIST among them.
SDX_TOOLS_API bool make_private_folder(const std::filesystem::path& folder) noexcept;
// Why a file or folder, also behind a link, must not be trusted: it belongs to a user other than this one or the administrator,
// or others may write to it. Empty: no reason, or it is not there.
SDX_TOOLS_API std::string distrust_of(const std::filesystem::path& path);

// Writes all of it; false, with errno, where that cannot be done.
SDX_TOOLS_API bool write_all(int fd, const void* data, std::size_t bytes) noexcept;

// Gives a file another name, in place of a file of that name, which its readers keep. Where Windows refuses for a moment, because
// a scanner has just opened the file, it is tried again for up to half a second.
SDX_TOOLS_API bool rename_over(const std::filesystem::path& from, const std::filesystem::path& to) noexcept;
SDX_TOOLS_API bool remove_file(const std::filesystem::path& path) noexcept;
// Whether this process may write to what is there.
SDX_TOOLS_API bool may_write(const std::filesystem::path& path) noexcept;

// Whether this process may make files in the folder.
SDX_TOOLS_API bool may_make_files_in(const std::filesystem::path& folder) noexcept;

// The path that UTF-8 text names. std::filesystem::path(std::string) would read the text in the system's own encoding, which is
// another one on Windows.
SDX_TOOLS_API std::filesystem::path path_of(std::string_view utf8);
// The other way round.
SDX_TOOLS_API std::string text_of(const std::filesystem::path& path);

}  // namespace sdx
