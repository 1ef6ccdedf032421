#include "vision/detect/suppress.h"

#include <algorithm>
#include <cmath>

#include "vision/names.h"

namespace sdx::vision {
namespace {

using faces::Box;
using faces::Face;

double area_of_overlap(double ax, double ay, double aw, double ah, double bx, double by, double bw, double bh) {
  const double w = std::min(ax + aw, bx + bw) - std::max(ax, bx);
  const double h = std::min(ay + ah, by + bh) - std::max(ay, by);
  return w > 0 && h > 0 ? w * h : 0;
}

// `extra`: added to the sides.
double over_union(const Box& a, const Box& b, double extra) {
  const auto side = [extra](float length) { return std::max(0.0, static_cast<double>(length) + extra); };
  const double both = area_of_overlap(a.x, a.y, side(a.width), side(a.height), b.x, b.y, side(b.width), side(b.height));
  const double all = side(a.width) * side(a.height) + side(b.width) * side(b.height) - both;
  return all > 0 ? both / all : 0;
}

// Whole pixels, and two boxes without any are the same. The detours by a distance and by single precision are OpenCV's, and
// decide close cases.
double over_union_truncated(const Box& a, const Box& b) {
  const auto cut = [](float v) { return std::trunc(static_cast<double>(v)); };
  const double area_a = cut(a.width) * cut(a.height), area_b = cut(b.width) * cut(b.height);
  if (area_a + area_b <= 0) return 1;
  const double both =
      area_of_overlap(cut(a.x), cut(a.y), cut(a.width), cut(a.height), cut(b.x), cut(b.y), cut(b.width), cut(b.height));
  const double distance = 1.0 - both / (area_a + area_b - both);
  return static_cast<double>(1.0F - static_cast<float>(distance));
}

bool same(const Box& a, const Box& b, Overlap rule, float limit) {
  const auto most = static_cast<double>(limit);
  switch (rule) {
    case Overlap::truncated: return over_union_truncated(a, b) > most;
    case Overlap::plus_one: return over_union(a, b, 1) > most;
    case Overlap::or_equal: return over_union(a, b, 0) >= most;
    case Overlap::plain:
    case Overlap::weighted: break;
  }
  return over_union(a, b, 0) > most;
}

std::vector<std::size_t> best_first(const std::vector<Face>& faces, float score, int top_k) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < faces.size(); ++i) {
    if (faces[i].score > score) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return faces[a].score > faces[b].score; });
  if (top_k > 0 && order.size() > static_cast<std::size_t>(top_k)) order.resize(static_cast<std::size_t>(top_k));
  return order;
}

// Adds weight * every coordinate.
void add(Face& sum, const Face& face, float weight) {
  sum.box.x += weight * face.box.x;
  sum.box.y += weight * face.box.y;
  sum.box.width += weight * face.box.width;
  sum.box.height += weight * face.box.height;
  for (const auto& [name, point] : vision::kPoints) {
    if (!(face.points.*point)) continue;
    if (!(sum.points.*point)) sum.points.*point = faces::Point{};
    (sum.points.*point)->x += weight * (face.points.*point)->x;
    (sum.points.*point)->y += weight * (face.points.*point)->y;
  }
}

std::vector<Face> weighted(const std::vector<Face>& faces, std::vector<std::size_t> order, float limit) {
  std::vector<Face> kept;
  while (!order.empty()) {
    const Face& best = faces[order.front()];
    std::vector<std::size_t> group, others;
    for (const std::size_t i : order)
      (i == order.front() || same(best.box, faces[i].box, Overlap::weighted, limit) ? group : others).push_back(i);
    float total = 0;
    for (const std::size_t i : group) total += faces[i].score;
    Face average;
    average.score = best.score;
    for (const std::size_t i : group) add(average, faces[i], faces[i].score / total);
    kept.push_back(average);
    order = std::move(others);
  }
  return kept;
}

}  // namespace

float overlap(const Box& a, const Box& b) { return static_cast<float>(over_union(a, b, 0)); }

std::vector<Face> suppress(const std::vector<Face>& candidates, Overlap rule, float score, float limit, int top_k) {
  // As in OpenCV, a single candidate is accepted even with a score of exactly the limit.
  if (rule == Overlap::truncated && candidates.size() <= 1) return candidates;
  const std::vector<std::size_t> order = best_first(candidates, score, top_k);
  if (rule == Overlap::weighted) return weighted(candidates, order, limit);
  std::vector<Face> kept;
  for (const std::size_t i : order) {
    const auto taken = [&](const Face& face) { return same(candidates[i].box, face.box, rule, limit); };
    if (std::none_of(kept.begin(), kept.end(), taken)) kept.push_back(candidates[i]);
  }
  return kept;
}

}  // namespace sdx::vision
