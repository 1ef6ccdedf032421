#pragma once
// Where compiled things are kept between runs.

#include <filesystem>

namespace sdx {

// `given`; where that is empty SDX_CACHE_DIR, else $XDG_CACHE_HOME/sdx, else $HOME/.cache/sdx, else a folder "sdx" in the
// system's folder for temporary files. Not created.
std::filesystem::path cache_folder(const std::filesystem::path& given = {});

}  // namespace sdx
