#pragma once
// Where compiled things are kept between runs, and whether what is there may be used.

#include <filesystem>
#include <string>

#include "base/tools_api.h"

namespace sdx::cache {

// `given`; where that is empty SDX_CACHE_DIR, else $XDG_CACHE_HOME/sdx, else $HOME/.cache/sdx. Not created. Empty where there is
// none of these: then nothing is kept. A folder that all users share, such as /tmp, is never taken.
SDX_TOOLS_API std::filesystem::path cache_folder(const std::filesystem::path& given = {});

// Why `path`, a file or folder in the cache folder `root`, must not be used: it, or one of the folders down to it, belongs to
// somebody other than this user or root, or others may write to it. Empty: it may be used. Parts that are not there are no
// reason. The log warns of each reason once.
std::string cache_problem(const std::filesystem::path& root, const std::filesystem::path& path);

// `name` in the cache folder; empty where there is none, or where it must not be used.
SDX_TOOLS_API std::filesystem::path cache_file(const std::filesystem::path& given, const std::filesystem::path& name);

// Of files in it: whatever the process's mask says, nobody else may write to them.
inline constexpr unsigned kCacheFileMode = 0644;

// Makes the folder, and those above it that are missing, for this user alone. Throws Error(io).
SDX_TOOLS_API void make_cache_folder(const std::filesystem::path& folder);

}  // namespace sdx::cache
