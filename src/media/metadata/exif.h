#pragma once
// EXIF: a TIFF structure without pixels. Source: EXIF 2.32 (CIPA DC-008). Every offset is checked.

#include <string>
#include <string_view>

namespace sdx::media {

struct ExifFacts {
  int orientation = 1;  // 1 to 8; missing and invalid values are 1
  double dpi = 0;       // 0: not said
};
ExifFacts read_exif(std::string_view exif);

// Adapts EXIF to a picture that was turned upright and has these sides: orientation becomes 1, existing tags of sizes and
// resolution (0: left) are set, and the thumbnail is removed with its bytes. `moved`: places in the picture changed, so
// SubjectArea and SubjectLocation are removed. Everything else keeps its place, including maker notes, whose offsets count from
// the beginning. "" if the structure is damaged.
std::string upright_exif(std::string_view exif, int width, int height, double dpi, bool moved = false);

// The EXIF part of a TIFF file, without maker notes: texts, orientation, resolution, the EXIF and the GPS directory. "" if there
// is nothing but the resolution.
std::string exif_of_tiff(std::string_view tiff);
// Text of a tag of the main directory; "" where there is none.
std::string exif_text(std::string_view exif, unsigned tag);
bool exif_is_big_endian(std::string_view exif);
// Copies the EXIF and the GPS directory, without maker notes, to the end of a TIFF file of the same byte order, and points the
// tags 34665 and 34853 of its main directory there.
void append_exif(std::string& tiff, std::string_view exif);
bool exif_has_directory(std::string_view exif, unsigned tag);  // 34665: EXIF; 34853: GPS

}  // namespace sdx::media
