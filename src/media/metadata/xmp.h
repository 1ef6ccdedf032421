#pragma once
// XMP packets, changed as text: what is not understood stays as it is.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::media {

// tiff:Orientation becomes 1; thumbnails and references to further parts of the file go. `moved`: what is said of places in the
// picture (regions of faces, the subject's area) and of who is in it does not hold any more and goes, too; so does a packet that
// cannot be read ("").
std::string upright_xmp(std::string xmp, bool moved = false);
// With the names and values added; a new packet where there is none to add to. Throws Error(invalid_argument) for what XML cannot
// hold (control characters, text that is not UTF-8).
std::string xmp_with_tags(std::string xmp, const std::vector<std::pair<std::string, std::string>>& tags);

}  // namespace sdx::media
