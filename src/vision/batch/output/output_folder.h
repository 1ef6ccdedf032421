#pragma once
// The output folder of a batch: files are written completely or not at all, and neither existing files nor inputs are
// overwritten.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include <sdx/error.hpp>

namespace sdx::vision::batch {

// Thrown where a result is there already.
class AlreadyThere : public Error {
 public:
  explicit AlreadyThere(const std::filesystem::path& file);
};

// Files that must not be written to, by device and inode. Thread-safe.
class Protected {
 public:
  void add(const std::filesystem::path& file);
  bool has(const std::filesystem::path& file) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::string> files_;
};

// Thread-safe.
class OutputFolder {
 public:
  static constexpr const char* kTemporary = ".sdx-faces.tmp";

  // Creates the folder unless `dry`, and removes unfinished files of processes that no longer run. `replace`: existing files
  // may be replaced. Throws Error(io).
  OutputFolder(std::filesystem::path folder, bool replace, bool dry, const Protected& inputs);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

  // Permits replacing existing files. Call it before the first claim().
  void permit_replacing() { replace_ = true; }

  // Reserves `name` (relative) for the picture `owner`. Throws Error(io) if it may not be written: it is an input, it exists
  // already, or another picture has it, or one that differs only in case. AlreadyThere: without permission to replace it.
  std::filesystem::path claim(const std::string& name, const std::string& owner);
  // After claim(): the file appears whole. Throws Error(io).
  void write(const std::filesystem::path& file, std::string_view content);

  // Whether a write failed because the disk is full or not writable, so that the next one will fail, too.
  bool hopeless() const { return hopeless_; }

 private:
  void remove_stale() const;
  [[noreturn]] void io(const char* what, const std::filesystem::path& file, std::error_code error);

  std::filesystem::path folder_;
  bool replace_, dry_;
  const Protected& inputs_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> owners_;  // of names, folded
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> hopeless_{false};
};

}  // namespace sdx::vision::batch
