#pragma once
// Files that are whole or not there.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/system/file.h"
#include "base/tools_api.h"

namespace sdx {

// The nearest existing folder above `path`, in which the file and its missing folders would be made.
SDX_TOOLS_API std::filesystem::path nearest_folder(const std::filesystem::path& path);

// Written under another name beside `path`; publish() checks that all is on the disk, and gives it its own name. Without
// publish() nothing is left. What is there and no file (a pipe, a terminal, /dev/null) stays what it is and is written to.
// Everything throws Error(io) with the system's reason.
class SDX_TOOLS_API NewFile {
 public:
  // Removes temporary files that killed processes left for this name, for which it reads the folder. `one_of_many` skips that, so
  // that n small files do not take n² steps. `mode`: the permissions, reduced by the process's mask.
  explicit NewFile(std::filesystem::path path, unsigned mode = 0666, bool one_of_many = false);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::span<const std::byte> content);
  // Gaps between two pieces, and behind the last one up to `bytes`, are zeros.
  void write(const void* data, std::uint64_t bytes, std::uint64_t offset) const;
  void resize(std::uint64_t bytes) const;
  void publish();

  // Checks that a new file of that name could be begun, for callers that work for a while before they write. Leaves nothing
  // behind.
  static void check(const std::filesystem::path& path);
  // The same for a file whose folders, if missing, will be created first.
  static void check_with_folders(const std::filesystem::path& path);

 private:
  void remove_abandoned() const;
  bool open_temporary(unsigned mode);
  bool open_in_place();
  [[noreturn]] void cannot_begin() const;
  [[noreturn]] void io(const char* what) const;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: written in place
  File file_;
};

}  // namespace sdx
