#include <algorithm>
#include <string>

#include "base/text/ascii.h"
#include "media/image.h"

namespace sdx::media {
namespace {

constexpr std::string_view kEndings[] = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".jfi", ".jif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff", ".btf",
    ".tf8", ".ppm", ".pgm", ".pbm", ".pnm", ".pam", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx", ".jxl", ".tga", ".icb",
    ".vda", ".vst", ".heic", ".heif", ".hif", ".avif",
    // Cameras.
    ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".sr2", ".srf", ".dng", ".raf", ".orf", ".rw2", ".rwl", ".pef", ".srw",
    ".mrw", ".x3f", ".iiq", ".3fr", ".erf", ".kdc", ".dcr", ".mef", ".mos"};

}  // namespace

bool has_picture_ending(const std::filesystem::path& file) {
  const std::string ending = ascii_lower(file.extension().string());
  return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

}  // namespace sdx::media
