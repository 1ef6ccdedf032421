#include "base/cache_folder.h"

#include <cstdlib>

namespace sdx {

std::filesystem::path cache_folder(const std::filesystem::path& given) {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
  };
  if (!given.empty()) return given;
  if (const auto own = variable("SDX_CACHE_DIR"); !own.empty()) return own;
  if (const auto xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "sdx";  // relative ones are to be ignored
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "sdx";
  std::error_code none;
  const auto temporary = std::filesystem::temp_directory_path(none);
  return (none ? std::filesystem::path("/tmp") : temporary) / "sdx";
}

}  // namespace sdx
