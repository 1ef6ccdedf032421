#pragma once
// XMP packets, changed as text: what is not understood stays as it is.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::media {

// tiff:Orientation becomes 1; thumbnails and references to a JPEG's further segments go.
std::string upright_xmp(std::string xmp);
// With the names and values added; a new packet where there is none to add to. Throws Error(invalid_argument) for what XML cannot
// hold (control characters, text that is not UTF-8).
std::string xmp_with_tags(std::string xmp, const std::vector<std::pair<std::string, std::string>>& tags);

}  // namespace sdx::media
