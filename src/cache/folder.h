#pragma once
// The folder for compiled models and other results between runs, and whether its contents may be used.

#include <filesystem>
#include <string>

#include "base/tools_api.h"

namespace sdx::cache {

// Returns `given`; if that is empty SDX_CACHE_DIR, else $XDG_CACHE_HOME/sdx, else $HOME/.cache/sdx. Does not create it. Empty
// without any of these: nothing is kept then. A folder that all users share, such as /tmp, is never used.
SDX_TOOLS_API std::filesystem::path cache_folder(const std::filesystem::path& given = {});

// The reason why `path`, a file or folder in the cache folder `root`, must not be used: it, or a folder between the two, belongs
// to a user other than this one or root, or others may write to it. Empty: it may be used. Missing parts are no reason. The log
// warns of each reason once.
std::string cache_problem(const std::filesystem::path& root, const std::filesystem::path& path);
// The same without the log.
SDX_TOOLS_API std::string cache_distrust(const std::filesystem::path& root, const std::filesystem::path& path);

// The path of `name` in the cache folder; empty if there is no folder, or if it must not be used.
SDX_TOOLS_API std::filesystem::path cache_file(const std::filesystem::path& given, const std::filesystem::path& name);

// The mode of files in the folder: whatever the process's mask says, only this user may write to them.
inline constexpr unsigned kCacheFileMode = 0644;

// Makes the folder, and those above it that are missing, for this user alone. Throws Error(io).
SDX_TOOLS_API void make_cache_folder(const std::filesystem::path& folder);

}  // namespace sdx::cache
