#pragma once
// The parts of pictures that the engine itself needs; the rest is in <sdx/image.hpp>.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include <sdx/image.hpp>

#include "base/tools_api.h"

namespace sdx::media {

using Fit = Preprocessing::Fit;
using Filter = Preprocessing::Filter;
using Layout = Preprocessing::Layout;
using Color = Preprocessing::Color;

// "jpeg", "png", "webp", "gif", "bmp", "pnm", "tiff", "jpeg2000", "jpegxl", "heic", "avif" or "raw" (a camera's) from the first
// bytes; "tga" by its header and size; "" for anything else.
SDX_TOOLS_API std::string_view image_format(std::span<const std::byte> bytes) noexcept;

// Whether a file's name has the ending of a readable picture format: for choosing files of a folder.
SDX_TOOLS_API bool has_picture_ending(const std::filesystem::path& file);

// `orientation`: EXIF's number, 1 (upright) to 8; others return the image as it is.
SDX_TOOLS_API Image apply_orientation(Image image, int orientation);

// Throws Error(invalid_argument) unless `pixels` has as many elements as the other fields say, and these are as blank() takes
// them.
SDX_TOOLS_API void check_pixels(const Image& image);

}  // namespace sdx::media
