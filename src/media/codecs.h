#pragma once
// One decoder per format; decode_image() chooses.

#include <cstddef>
#include <span>

#include "media/image.h"

namespace sdx::media {

Image decode_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_png(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_webp(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_bmp(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_pnm(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_tiff(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_jpeg2000(std::span<const std::byte> bytes, const DecodeLimits& limits);

// Throws Error(out_of_memory) when the header's size is beyond the limits, Error(invalid_argument) when it is zero.
void check_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits);

}  // namespace sdx::media
