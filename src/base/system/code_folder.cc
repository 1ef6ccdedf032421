#include "base/system/code_folder.h"

#include <dlfcn.h>

namespace sdx {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path folder_of(const void* code) {
  Dl_info info{};
  std::error_code ignored;
  if (::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::absolute(info.dli_fname, ignored).parent_path();
}

}  // namespace sdx
