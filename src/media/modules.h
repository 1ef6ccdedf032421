#pragma once
// Formats that libraries of their own read and write: see module_api.h. They are loaded when the first such picture is met.

#include <vector>

#include "base/module/look.h"
#include "base/tools_api.h"
#include "media/codecs.h"
#include "media/module_api.h"

namespace sdx::media {

// The libraries of formats and of colour profiles, for a look at the installation.
struct FormatModule {
  const char* name;     // "heif"
  const char* purpose;  // "HEIC and AVIF pictures"
  LibraryAsked asked;
};
SDX_TOOLS_API std::vector<FormatModule> format_modules();

// All throw Error(io) where the library cannot be loaded, with the name of Debian's package.
Stored decode_tiff(std::span<const std::byte> bytes, const Request& request);
Stored decode_heif(std::span<const std::byte> bytes, const Request& request);  // HEIC and AVIF
Stored decode_jxl(std::span<const std::byte> bytes, const Request& request);
Stored decode_raw(std::span<const std::byte> bytes, const Request& request);
ImageInfo probe_tiff(std::span<const std::byte> bytes);
ImageInfo probe_heif(std::span<const std::byte> bytes);
ImageInfo probe_jxl(std::span<const std::byte> bytes);
ImageInfo probe_raw(std::span<const std::byte> bytes);
std::string write_tiff(const Image& image, const Writing& writing);
std::string write_avif(const Image& image, const Writing& writing);

// Converts in place, to three or four channels. Returns false if the profile is invalid or does not fit the picture; `why` gives
// the reason.
bool apply_profile(Stored& picture, std::string& why);

}  // namespace sdx::media
