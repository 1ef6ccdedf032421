#pragma once
// Output of vendors' compilers, kept between runs: ROOT/PROVIDER/KEY/ is the folder that a vendor's library reads and writes for
// one model.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/system/file.h"
#include "base/tools_api.h"

namespace sdx::cache {

// One such folder, in use. When it is opened and no other process uses it, its files must be the same as when it was last sealed;
// otherwise all of them are removed, because a vendor's library may crash on half a file. Thread-safe apart from discard().
// Processes may share an entry.
class CacheEntry {
 public:
  // `folder`: ROOT/PROVIDER. `label`: for people, the model's file name. Null, with a line in the log, when the folder cannot be
  // written, or must not be used (see cache_problem()): then nothing is kept.
  static std::shared_ptr<CacheEntry> open(const std::filesystem::path& folder, const std::string& key, const std::string& label);
  // Seals once more: some vendors write during runs, or when their session ends.
  ~CacheEntry();
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // Whether there were files from an earlier run.
  bool warm() const { return warm_; }
  // Records the present files as valid. Never throws: files that are not recorded are made again.
  void seal() noexcept;
  // Removes the files, for a vendor that cannot read its own.
  void discard() noexcept;

 private:
  struct Kept {
    std::uintmax_t size = 0;
    std::string hash;
    std::filesystem::file_time_type changed;
  };
  CacheEntry() = default;
  bool take();
  void check();
  std::map<std::string, Kept> scan(const std::map<std::string, Kept>& known) const;

  std::filesystem::path folder_;
  std::string label_;
  std::map<std::string, Kept> files_;
  File lock_;
  bool warm_ = false;
};

// An entry as `sdx cache ls` shows it: such a folder, or a single file ROOT/PROVIDER/KEY.txt, whose line "label …" is for people.
struct CacheItem {
  std::string provider, key, label;
  std::filesystem::path folder;  // or the file
  std::uintmax_t bytes = 0;
  std::size_t files = 0;
  std::int64_t last_used = 0;  // seconds since 1970
  bool in_use = false;         // by a session of any process
};

// The entries of a cache folder (ROOT), the last used first. A missing folder has none.
SDX_TOOLS_API std::vector<CacheItem> list_cache(const std::filesystem::path& root);
// Removes an entry. False where it is in use, or where removing fails.
SDX_TOOLS_API bool remove_cache_item(const CacheItem& item);

}  // namespace sdx::cache
