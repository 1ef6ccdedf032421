#include <set>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/zip/writer.h"

namespace sdx {

std::string to_npz(const NamedTensors& tensors, bool compress) {
  constexpr std::size_t kMost16 = 0xFFFF;
  // Aligns the array itself: its .npy header is a multiple of 64 bytes.
  constexpr std::size_t kAlign = 64;
  if (tensors.size() >= kMost16) fail(ErrorCode::invalid_argument, "an .npz archive of {} arrays is not written", tensors.size());
  ZipWriter zip;
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const std::string member = name + ".npy";
    if (!names.insert(member).second) fail(ErrorCode::invalid_argument, "two arrays of a .npz archive are called '{}'", name);
    if (member.size() > kMost16)
      fail(ErrorCode::invalid_argument, "an array's name has {} bytes, .npz allows 65531", name.size());
    const std::string data = to_npy(tensor);
    if (!zip.fits(data.size())) {
      fail(ErrorCode::invalid_argument, "an .npz archive of 4 GiB or more is not written; write single .npy files instead");
    }
    zip.add(member, data, compress, kAlign);
  }
  return zip.finish();
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors, bool compress) {
  write_file_atomically(path, to_npz(tensors, compress));
}

}  // namespace sdx
