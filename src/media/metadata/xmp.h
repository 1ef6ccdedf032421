#pragma once
// Changes XMP packets as text: unknown parts stay as they are.

#include <string>
#include <utility>
#include <vector>

namespace sdx::media {

// Sets tiff:Orientation to 1, and removes thumbnails and references to further parts of the file. `moved`: places in the picture
// changed, so facts about places (regions of faces, the subject's area) and about persons are removed, too. A packet that cannot
// be read then becomes "".
std::string upright_xmp(std::string xmp, bool moved = false);
// Adds the names and values, to a new packet if there is none to add to. Throws Error(invalid_argument) for text that XML cannot
// hold (control characters, bytes that are not UTF-8).
std::string xmp_with_tags(std::string xmp, const std::vector<std::pair<std::string, std::string>>& tags);

}  // namespace sdx::media
