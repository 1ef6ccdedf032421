#pragma once
// IPTC-IIM records inside the "image resources" that Photoshop introduced and JPEG's APP13 segments hold.

#include <string>
#include <string_view>

namespace sdx::media {

inline constexpr std::string_view kPhotoshop{"Photoshop 3.0\0", 14};  // how such a segment begins

// "" where a segment holds none.
std::string iptc_of(std::string_view segment);
// A segment.
std::string iptc_segment(std::string_view iptc);

}  // namespace sdx::media
