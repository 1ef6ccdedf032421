#pragma once
// In which sizes a picture is looked at, and how what is found in them becomes one list. Detectors of the YuNet family see faces
// of about 10 to 300 pixels: what is larger they miss or find in parts, so that such pictures are looked at in a small size as
// well.

#include <sdx/faces.hpp>
#include <vector>

namespace sdx::vision {

struct Extent {
  int width = 0, height = 0;
  int longest() const { return width > height ? width : height; }
};

// The size with this longer side, proportions kept; sides are rounded to nearest and at least 1.
Extent with_longest(Extent picture, int longest);
// The largest size with these proportions inside `frame`.
Extent fitted(Extent picture, Extent frame);

inline constexpr int kOrdinaryLook = 640;   // longer side where nobody asks for small faces
inline constexpr int kCrowdLook = 1920;     // where that look saw faces that are almost too small
inline constexpr float kLargestFace = 300;  // pixels of a look
inline constexpr float kSmallFace = 24;

// Longer sides, the largest first, none larger than the picture's. min_face: as in DetectorOptions. small_too: the model misses
// what is larger than kLargestFace.
std::vector<int> looks(Extent picture, int min_face, bool small_too);

// A part of a large look, and which faces are its own: those whose centre is in [own_x, own_x + own_width) and so on.
struct Tile {
  int x = 0, y = 0, width = 0, height = 0;
  int own_x = 0, own_y = 0, own_width = 0, own_height = 0;
};
inline constexpr int kTileOverlap = 128;  // pixels: larger faces are for a smaller look
// One for looks of ordinary size.
std::vector<Tile> tiles(Extent look);

// Faces in pixels of the picture; `scale`: pixels of the look for one of the picture.
struct Sight {
  double scale = 1;
  std::vector<faces::Face> faces;
};

// `sights` from the finest to the coarsest. Best first.
std::vector<faces::Face> merged(const std::vector<Sight>& sights, float nms);

// Coordinates times these factors, then moved.
void transform(faces::Face& face, double scale_x, double scale_y, double x = 0, double y = 0);
// Of a picture turned clockwise by `degrees` (90, 180, 270) back to the picture, whose size is `picture`.
void turn_back(faces::Face& face, int degrees, Extent picture);

}  // namespace sdx::vision
