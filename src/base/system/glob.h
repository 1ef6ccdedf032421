#pragma once
// Files by patterns, as shells have them, and the files of folders.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// Whether the text has *, ? or [.
SDX_TOOLS_API bool is_pattern(std::string_view text);

// One part of a path against one part of a pattern: * any letters, ? one (UTF-8) letter, [abc], [a-z], [!abc]. A leading dot is
// matched by a dot alone. Takes time proportional to the product of the lengths at most.
SDX_TOOLS_API bool matches_part(std::string_view pattern, std::string_view name);

struct Matched {
  std::filesystem::path base;                // the folder in front of the first part with a pattern
  std::vector<std::filesystem::path> files;  // sorted; regular files only
};

// Files that fit; "**" is any number of folders, none included. Hidden folders and links to folders are not entered by "**".
SDX_TOOLS_API Matched expand_pattern(const std::string& pattern);

// What to do with the contents of a folder.
struct FolderWalk {
  std::function<bool(const std::filesystem::path& folder)> skips;  // may be empty
  std::function<void(const std::filesystem::path& file)> file;     // hidden ones, too
  std::function<void(const std::filesystem::path& folder, const std::error_code& why)> unreadable;
};
// The regular files in `folder` and below, in the order of their paths. Leaves out hidden folders, and links to folders, which
// may lead back to where they are.
SDX_TOOLS_API void walk_folder(const std::filesystem::path& folder, const FolderWalk& walk);

}  // namespace sdx
