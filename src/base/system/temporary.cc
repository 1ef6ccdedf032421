#include "base/system/temporary.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/random_bits.h"

namespace sdx {

std::filesystem::path make_temporary_folder(std::string_view start) {
  constexpr int kTries = 100;
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  std::filesystem::path folder;
  for (int i = 0; i < kTries; ++i) {
    folder = parent / path_of(fmt::format("{}{:016x}", start, random_bits()));
    if (make_private_folder(folder)) return folder;
    if (errno != EEXIST) break;
  }
  const int error = errno;
  fail(ErrorCode::io, "cannot create a folder '{}': {}; TMPDIR names another place for temporary files", folder.string(),
       std::strerror(error));
}

}  // namespace sdx
