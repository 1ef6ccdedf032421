#pragma once
// Learning of files as they appear in folders.

#include <filesystem>
#include <memory>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

struct FolderEvent {
  enum class What {
    written,      // the file `name` was written or moved there, and is closed
    folder_made,  // a folder of that name was made or moved there
    gone,         // the folder is no longer there, and no longer watched; `name` is empty
    lost,         // there was too much to tell: anything may have changed in any folder; `folder` is -1
  };
  int folder = -1;  // what add() returned
  What what = What::written;
  std::filesystem::path name;
};

// One thread at a time.
class SDX_TOOLS_API FolderWatch {
 public:
  // Throws Error(io).
  FolderWatch();
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Watches a folder, not the folders in it; its number, or -1 with errno: ENOENT or ENOTDIR where there is none. A folder that
  // is watched already has the same number again.
  int add(const std::filesystem::path& folder);
  // What happened, after at most `ms` milliseconds; empty: nothing did.
  std::vector<FolderEvent> wait(int ms);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether another process has the file open for writing, as far as the file system tells.
SDX_TOOLS_API bool is_being_written(const std::filesystem::path& file) noexcept;

}  // namespace sdx
