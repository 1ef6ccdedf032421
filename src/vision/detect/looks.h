#pragma once
// The sizes at which a picture is searched, and how the faces found are merged into one list. Detectors of the YuNet family find
// faces of about 10 to 300 pixels. They miss larger ones or find parts of them, so pictures are also searched at a small
// size.

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

// The longer side of a look if no small faces are requested: 640 pixels, and more for pictures longer than 3:2. The cost of
// looks, and the size of the smallest faces in them, thus depend on a picture's area.
int ordinary_look(Extent picture);

inline constexpr float kHint = 0.3F;        // score from which on a small face is reason enough to look closer
inline constexpr float kLargestFace = 300;  // pixels of a look

inline constexpr double kSmallestFace = 10;  // pixels of a look

// The longer sides of looks, the largest first, none larger than the picture's. min_face: the least size of the faces, in pixels
// of the picture; 0: larger ones than those of an ordinary look. small_too: the model misses faces larger than kLargestFace.
std::vector<int> looks(Extent picture, double min_face, bool small_too);

// A part of a large look, and which faces are its own: those whose centre is in [own_x, own_x + own_width) and so on.
struct Tile {
  int x = 0, y = 0, width = 0, height = 0;
  int own_x = 0, own_y = 0, own_width = 0, own_height = 0;
};
inline constexpr int kTileOverlap = 128;  // pixels: larger faces are for a smaller look
// One for looks of ordinary size.
std::vector<Tile> tiles(Extent look);

// Whether this tile reports a face, in pixels of the look: its centre must belong to the tile, and it must not be cut off here
// and whole in another tile.
bool owns(const Tile& tile, const faces::Box& box);

// The faces of one look, in pixels of the picture.
struct Sight {
  int longest = 0;       // side of the look
  double closeness = 1;  // its side as a multiple of an ordinary look's
  double scale = 1;      // pixels of the look for one of the picture
  std::vector<faces::Face> faces;
  std::vector<faces::Face> doubtful;  // below the requested score, from kHint on
};

// Whether the finest look hints at faces that a larger one would see better: some are small, even if doubtful, or no look has
// found any. The latter justifies only one more look.
bool hints_at_small_faces(const std::vector<Sight>& sights);
// The longer side of the look that follows one of `longest`, for small faces; 0: there is none.
int closer_look(int longest, Extent picture);
// The longer side of the last such look.
int closest_look(Extent picture);

// `sights` are ordered from the finest to the coarsest. Returns the best faces first.
std::vector<faces::Face> merged(const std::vector<Sight>& sights, float nms);

// Coordinates times these factors, then moved.
void transform(faces::Face& face, double scale_x, double scale_y, double x = 0, double y = 0);
// Converts a face of a picture turned clockwise by `degrees` (90, 180, 270) back to the original picture, whose size is
// `picture`.
void turn_back(faces::Face& face, int degrees, Extent picture);

}  // namespace sdx::vision
