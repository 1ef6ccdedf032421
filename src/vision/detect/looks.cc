#include "vision/detect/looks.h"

#include <algorithm>
#include <cmath>

#include "vision/detect/suppress.h"
#include "vision/names.h"

namespace sdx::vision {
namespace {

using faces::Box;
using faces::Face;

constexpr int kOrdinary = 640;
constexpr double kOrdinaryArea = kOrdinary * kOrdinary / 1.5;
constexpr int kSmallPart = 4;  // of an ordinary look is the small one: faces of 300 pixels have 75 there
constexpr int kTile = 1280;
constexpr double kSmallFace = 24;  // pixels of a look

float longer(const Box& b) { return std::max(b.width, b.height); }

// The share of `a` that is inside `b`, 0 to 1.
float share_inside(const Box& a, const Box& b) {
  const float w = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const float h = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  const float area = a.width * a.height;
  return w > 0 && h > 0 && area > 0 ? w * h / area : 0;
}

// Adds the faces of a coarser look to those of finer ones. `finer`: the scale of the coarsest of the finer looks.
void add_coarser(std::vector<Face>& faces, const Sight& coarse, double finer, float nms) {
  // Small faces in the coarse look are left to the finer one; the smallest look of all needs larger ones to be believed.
  const double sure = coarse.closeness < 1 ? 2 * kSmallFace : kSmallFace;
  std::vector<Face> fresh;
  for (const Face& c : coarse.faces) {
    const auto match = std::max_element(
        faces.begin(), faces.end(), [&](const Face& a, const Face& b) { return overlap(a.box, c.box) < overlap(b.box, c.box); });
    const bool known = match != faces.end() && overlap(match->box, c.box) > nms;
    if (longer(c.box) * finer <= kLargestFace) {
      if (!known && longer(c.box) * coarse.scale >= sure) fresh.push_back(c);
      continue;
    }
    // Too large for the finer look: faces inside of it there are parts of it, unless they are much smaller.
    const Face whole = !known || c.score > match->score ? c : *match;
    std::erase_if(faces, [&](const Face& f) {
      return overlap(f.box, c.box) > nms || (share_inside(f.box, c.box) > 0.6F && longer(f.box) > longer(c.box) / 4);
    });
    fresh.push_back(whole);
  }
  faces.insert(faces.end(), fresh.begin(), fresh.end());
}

std::vector<std::pair<int, int>> cut_side(int side) {
  if (side <= kTile + kTile / 4) return {{0, side}};
  const int count = (side - kTileOverlap + kTile - kTileOverlap - 1) / (kTile - kTileOverlap);
  const int length = std::min(side, ((side + (count - 1) * kTileOverlap + count - 1) / count + 31) / 32 * 32);
  std::vector<std::pair<int, int>> parts;
  for (int i = 0; i < count; ++i) {
    parts.emplace_back(static_cast<int>(static_cast<std::int64_t>(side - length) * i / std::max(1, count - 1)), length);
  }
  return parts;
}

// The position from which part i of a side is responsible: the middle of its overlap with the part before.
int own_begin(const std::vector<std::pair<int, int>>& parts, std::size_t i) {
  return i == 0 ? parts[0].first : (parts[i].first + parts[i - 1].first + parts[i - 1].second) / 2;
}

int own_end(const std::vector<std::pair<int, int>>& parts, std::size_t i) {
  return i + 1 == parts.size() ? parts[i].first + parts[i].second : own_begin(parts, i + 1);
}

}  // namespace

Extent with_longest(Extent picture, int longest) {
  const double k = static_cast<double>(longest) / picture.longest();
  const auto side = [&](int s) { return std::max(1, static_cast<int>(std::floor(s * k + 0.5))); };
  return {side(picture.width), side(picture.height)};
}

Extent fitted(Extent picture, Extent frame) {
  const double k = std::min(static_cast<double>(frame.width) / picture.width, static_cast<double>(frame.height) / picture.height);
  const auto side = [&](int s, int most) { return std::clamp(static_cast<int>(std::floor(s * k + 0.5)), 1, most); };
  return {side(picture.width, frame.width), side(picture.height, frame.height)};
}

int ordinary_look(Extent picture) {
  const double shortest = std::max(1, std::min(picture.width, picture.height));
  return std::max(kOrdinary, static_cast<int>(std::sqrt(kOrdinaryArea * picture.longest() / shortest) + 0.5));
}

std::vector<int> looks(Extent picture, double min_face, bool small_too) {
  const int longest = picture.longest(), ordinary = ordinary_look(picture), small = ordinary / kSmallPart;
  double first = ordinary;
  if (min_face > 0) first = std::max<double>(small, std::ceil(std::ceil(longest * kSmallestFace / min_face) / 32) * 32);
  std::vector<int> out{static_cast<int>(std::min<double>(first, longest))};
  while (out.back() > ordinary * 3 / 2) out.push_back(std::max(ordinary, out.back() / 6));
  if (small_too && out.back() > kLargestFace * 4 / 5 && out.back() > small) out.push_back(small);
  return out;
}

std::vector<Tile> tiles(Extent look) {
  const auto columns = cut_side(look.width), rows = cut_side(look.height);
  std::vector<Tile> out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      Tile t{columns[c].first, rows[r].first, columns[c].second, rows[r].second, own_begin(columns, c), own_begin(rows, r), 0, 0};
      t.own_width = own_end(columns, c) - t.own_x;
      t.own_height = own_end(rows, r) - t.own_y;
      out.push_back(t);
    }
  }
  return out;
}

bool owns(const Tile& t, const Box& box) {
  const auto within = [](float v, int begin, int length) {
    return v >= static_cast<float>(begin) && v < static_cast<float>(begin + length);
  };
  return longer(box) <= static_cast<float>(kTileOverlap) && within(box.x + box.width / 2, t.own_x, t.own_width) &&
         within(box.y + box.height / 2, t.own_y, t.own_height);
}

bool hints_at_small_faces(const std::vector<Sight>& sights) {
  const Sight& finest = sights.front();
  const auto is_small = [&](const Face& f) { return static_cast<double>(longer(f.box)) * finest.scale < kSmallFace; };
  if (std::any_of(finest.faces.begin(), finest.faces.end(), is_small) ||
      std::any_of(finest.doubtful.begin(), finest.doubtful.end(), is_small)) {
    return true;
  }
  const bool nothing = std::all_of(sights.begin(), sights.end(), [](const Sight& s) { return s.faces.empty(); });
  return nothing && finest.closeness <= 1;
}

int closest_look(Extent picture) { return std::min(picture.longest(), 9 * ordinary_look(picture)); }

int closer_look(int longest, Extent picture) {
  // A look costs as its area. The first step is small, because pictures without faces pay for it: five times an ordinary look.
  constexpr double kFirst = 1500.0 / kOrdinary;
  const int ordinary = ordinary_look(picture), closest = closest_look(picture);
  const double next = longest <= ordinary ? kFirst * ordinary : 3.0 * longest;
  const int side = static_cast<int>(std::min<double>(next, closest));
  return side * 4.0 > longest * 5.0 ? side : 0;
}

std::vector<Face> merged(const std::vector<Sight>& sights, float nms) {
  if (sights.empty()) return {};
  std::vector<Face> faces = sights.front().faces;
  for (std::size_t i = 1; i < sights.size(); ++i) add_coarser(faces, sights[i], sights[i - 1].scale, nms);
  std::stable_sort(faces.begin(), faces.end(), [](const Face& a, const Face& b) { return a.score > b.score; });
  return faces;
}

void transform(Face& face, double scale_x, double scale_y, double x, double y) {
  const auto across = [&](float v) { return static_cast<float>(v * scale_x + x); };
  const auto down = [&](float v) { return static_cast<float>(v * scale_y + y); };
  face.box = {across(face.box.x), down(face.box.y), static_cast<float>(face.box.width * scale_x),
              static_cast<float>(face.box.height * scale_y)};
  change_points(face.points, [&](faces::Point p) { return faces::Point{across(p.x), down(p.y)}; });
}

void turn_back(Face& face, int degrees, Extent picture) {
  const auto width = static_cast<float>(picture.width), height = static_cast<float>(picture.height);
  const auto back = [&](faces::Point p) -> faces::Point {
    if (degrees == 90) return {p.y, height - p.x};
    if (degrees == 180) return {width - p.x, height - p.y};
    return {width - p.y, p.x};
  };
  const faces::Point a = back({face.box.x, face.box.y}), b = back({face.box.x + face.box.width, face.box.y + face.box.height});
  face.box = {std::min(a.x, b.x), std::min(a.y, b.y), std::abs(a.x - b.x), std::abs(a.y - b.y)};
  change_points(face.points, back);
}

}  // namespace sdx::vision
