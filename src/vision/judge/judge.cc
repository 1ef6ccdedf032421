#include <algorithm>
#include <numeric>

#include <sdx/faces.hpp>

#include "media/image.h"
#include "media/resize.h"
#include "vision/box.h"
#include "vision/judge/best.h"
#include "vision/judge/pose.h"

namespace sdx::faces {
namespace {

using media::Image;

// 0 to 1.
double mean_luma(const Image& picture) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < picture.pixels.size(); i += channels) {
    const std::uint8_t* p = picture.pixels.data() + i;
    sum += channels == 1 ? 1000U * p[0] : 299U * p[0] + 587U * p[1] + 114U * p[2];
  }
  const auto count = static_cast<double>(picture.pixels.size() / channels);
  return static_cast<double>(sum) / (count * 255 * 1000);
}

// The area in pixels; -1 if it is NaN.
double area(const Face& face) {
  const double pixels = static_cast<double>(face.box.width) * static_cast<double>(face.box.height);
  return pixels >= 0 ? pixels : -1;
}

// The first of those that nothing is greater than.
template <class Greater>
std::size_t greatest(std::size_t count, const Greater& greater) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (greater(i, best)) best = i;
  }
  return best;
}

std::vector<std::size_t> best_of(const Image& picture, const std::vector<Face>& faces) {
  std::vector<Level> levels;
  for (const Face& face : faces) levels.push_back(vision::has_area(face.box) ? judge(picture, face).level : Level::low);
  return {vision::best_of(faces, levels)};
}

}  // namespace

Quality judge(const Image& picture, const Face& face) {
  media::check_pixels(picture);
  vision::check_box(face.box);
  Quality q;
  q.size_px = static_cast<double>(std::min(face.box.width, face.box.height));
  const vision::Pixels part = vision::pixels_of(face.box, picture.width, picture.height);
  if (!part.empty()) {
    const Image inside = media::crop(picture, part.left, part.top, part.right - part.left, part.bottom - part.top);
    q.sharpness = sharpness(inside);
    q.exposure = mean_luma(inside);
  }
  q.level = level_of(q.sharpness);
  if (const auto pose = vision::estimate_pose(face.points)) {
    q.yaw = pose->yaw;
    q.pitch = pose->pitch;
    q.roll = pose->roll;
  }
  return q;
}

std::vector<std::size_t> pick(const Image& picture, const std::vector<Face>& faces, Pick which, int n) {
  if (faces.empty()) return {};
  switch (which) {
    case Pick::largest:
      return {greatest(faces.size(), [&](std::size_t a, std::size_t b) { return area(faces[a]) > area(faces[b]); })};
    case Pick::best: return best_of(picture, faces);
    case Pick::nth:
      if (n < 1 || static_cast<std::size_t>(n) > faces.size()) return {};
      return {static_cast<std::size_t>(n) - 1};
    case Pick::all: break;
  }
  std::vector<std::size_t> all(faces.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::vector<std::size_t> left_to_right(const std::vector<Face>& faces) {
  std::vector<std::size_t> order(faces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> middle;
  for (const Face& f : faces) middle.push_back(static_cast<double>(f.box.x) + static_cast<double>(f.box.width) / 2);
  std::erase_if(order, [&](std::size_t i) { return middle[i] != middle[i]; });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return middle[a] < middle[b]; });
  return order;
}

}  // namespace sdx::faces

namespace sdx::vision {

std::size_t best_of(std::span<const faces::Face> faces, std::span<const faces::Level> levels) {
  return sdx::faces::greatest(faces.size(), [&](std::size_t a, std::size_t b) {
    if (levels[a] != levels[b]) return levels[a] > levels[b];
    return faces[a].score > faces[b].score;
  });
}

}  // namespace sdx::vision
