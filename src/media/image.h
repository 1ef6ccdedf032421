#pragma once
// What the engine itself needs of pictures; the rest is in <sdx/image.hpp>.

#include <cstddef>
#include <span>
#include <string_view>

#include <sdx/image.hpp>

#include "base/tools_api.h"

namespace sdx::media {

using Fit = Preprocessing::Fit;
using Filter = Preprocessing::Filter;
using Layout = Preprocessing::Layout;
using Color = Preprocessing::Color;

// "jpeg", "png", "webp", "bmp", "pnm", "tiff", "jpeg2000", "heic", "avif" or "raw" (a camera's) from the first bytes; "" for
// anything else.
SDX_TOOLS_API std::string_view image_format(std::span<const std::byte> bytes) noexcept;

// `orientation` as EXIF numbers it, 1 (upright) to 8; others return the image as it is.
Image apply_orientation(Image image, int orientation);

// Throws Error(invalid_argument) unless `pixels` has as many elements as the other fields say, and these are as blank() takes
// them.
SDX_TOOLS_API void check_pixels(const Image& image);

}  // namespace sdx::media
