#pragma once
// Colours as people write them.

#include <array>
#include <cstdint>
#include <string_view>

namespace sdx::vision::batch {

// Red, green, blue, opacity from "#rgb", "#rrggbb", "#rrggbbaa", "rgb(r,g,b)" with 0 to 255, "hsv(h,s,v)" with degrees and per
// cent, or one of a few names: black, white, grey, red, green, blue, yellow, transparent. Throws Error(invalid_argument).
std::array<std::uint8_t, 4> parse_colour(std::string_view text);

}  // namespace sdx::vision::batch
