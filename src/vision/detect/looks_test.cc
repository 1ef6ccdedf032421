#include "vision/detect/looks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sdx::vision {
namespace {

faces::Face face(float x, float y, float width, float height, float score) { return {{x, y, width, height}, score, {}}; }

TEST(FaceLooks, SizesByPictureAndSmallestFace) {
  EXPECT_EQ(looks({4000, 3000}, 0, true), (std::vector<int>{640, 160}));
  EXPECT_EQ(looks({4000, 3000}, 0, false), (std::vector<int>{640}));
  EXPECT_EQ(looks({600, 400}, 0, true), (std::vector<int>{600, 160}));
  EXPECT_EQ(looks({120, 100}, 0, true), (std::vector<int>{120}));
  EXPECT_EQ(looks({4000, 3000}, 20, true), (std::vector<int>{2016, 640, 160}));  // 20 pixels become 10
  EXPECT_EQ(looks({4000, 3000}, 1, true).front(), 4000);                         // never enlarged
  EXPECT_EQ(looks({4000, 3000}, 500, true), (std::vector<int>{160}));
  EXPECT_EQ(with_longest({800, 534}, 640).height, 427);
  EXPECT_EQ(with_longest({20000, 1}, 640).height, 1);
  EXPECT_EQ(fitted({100, 50}, {640, 640}).height, 320);
}

TEST(FaceLooks, CloserLooksEnd) {
  EXPECT_EQ(closer_look(640, {4000, 3000}), 1500);
  EXPECT_EQ(closer_look(640, {700, 500}), 0);  // hardly larger
  EXPECT_EQ(closer_look(640, {700, 1000}), 1000);
  int longest = 640, steps = 0;
  while (const int next = closer_look(longest, {65535, 65535})) {
    ASSERT_GT(next, longest);
    longest = next;
    ASSERT_LT(++steps, 10);
  }
  EXPECT_EQ(longest, 5760);
  EXPECT_EQ(longest, closest_look({65535, 65535}));
}

TEST(FaceLooks, ElongatedPicturesAreLookedAtByTheirArea) {
  EXPECT_EQ(ordinary_look({6000, 4000}), 640);
  EXPECT_EQ(ordinary_look({1000, 1000}), 640);
  for (const Extent size : {Extent{8192, 4096}, {16000, 900}, {900, 16000}, {65535, 1}}) {
    const Extent look = with_longest(size, std::min(size.longest(), ordinary_look(size)));
    const double area = static_cast<double>(look.width) * look.height;
    EXPECT_TRUE(area > 250'000 || look.longest() == size.longest()) << size.width << "x" << size.height;
    EXPECT_LT(area, 290'000);
    std::vector<int> all = looks(size, 0, true);
    EXPECT_EQ(all.front(), std::min(size.longest(), ordinary_look(size)));
    EXPECT_TRUE(std::is_sorted(all.rbegin(), all.rend()));
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "the same look twice";
  }
  // Faces of 60 pixels have more than 8 at once, and more than 19 in the next look.
  EXPECT_GT(60.0 * ordinary_look({16000, 900}) / 16000, 8);
  EXPECT_GT(60.0 * closer_look(ordinary_look({16000, 900}), {16000, 900}) / 16000, 19);
  EXPECT_EQ(looks({8192, 4096}, 10, true).front(), 8192);
}

TEST(FaceLooks, TilesShareAPictureOut) {
  for (const Extent size : {Extent{640, 480}, {4000, 3000}, {5760, 1}, {1601, 1600}, {1, 2000}, {5760, 5760}}) {
    const std::vector<Tile> all = tiles(size);
    std::int64_t owned = 0;
    for (const Tile& t : all) {
      EXPECT_GE(t.x, 0);
      EXPECT_LE(t.x + t.width, size.width);
      EXPECT_LE(t.y + t.height, size.height);
      EXPECT_LE(t.width, 1600);
      EXPECT_LE(t.height, 1600);
      owned += static_cast<std::int64_t>(t.own_width) * t.own_height;
      // A face of the largest size with its centre in the part that the tile owns is inside the tile, unless it leaves the
      // picture.
      EXPECT_TRUE(t.x == 0 || t.own_x - t.x >= kTileOverlap / 2);
      EXPECT_TRUE(t.x + t.width == size.width || t.x + t.width - t.own_x - t.own_width >= kTileOverlap / 2);
      EXPECT_TRUE(t.y == 0 || t.own_y - t.y >= kTileOverlap / 2);
    }
    EXPECT_EQ(owned, static_cast<std::int64_t>(size.width) * size.height) << size.width << "x" << size.height;
  }
  EXPECT_EQ(tiles({1600, 1600}).size(), 1U);
  const Tile t{100, 0, 500, 500, 150, 0, 400, 500};
  EXPECT_TRUE(owns(t, {200, 10, 50, 50}));
  EXPECT_FALSE(owns(t, {100, 10, 50, 50}));   // its neighbour's
  EXPECT_FALSE(owns(t, {200, 10, 150, 50}));  // may be cut off
}

TEST(FaceLooks, WholeFacesReplaceTheirParts) {
  // Looks of 640 and 160 pixels at a picture of 640: a close-up of which the first sees an eye and a mouth.
  const Sight fine{640, 1, 1, {face(150, 150, 120, 120, 0.7F), face(500, 10, 40, 40, 0.9F), face(300, 400, 20, 20, 0.8F)}, {}};
  const Sight coarse{
      160, 0.25, 0.25, {face(100, 100, 400, 420, 0.85F), face(500, 10, 41, 40, 0.7F), face(10, 10, 40, 40, 0.9F)}, {}};
  const std::vector<faces::Face> all = merged({fine, coarse}, 0.3F);
  ASSERT_EQ(all.size(),
            3U);  // the small one inside may be somebody's in front; what 160 pixels alone see that small is not believed
  EXPECT_EQ(all[0].score, 0.9F);
  EXPECT_EQ(all[0].box.width, 40);  // of two that are one, the finer look's
  EXPECT_EQ(all[1].box.width, 400);
  EXPECT_EQ(all[2].score, 0.8F);
}

TEST(FaceLooks, TheSameLargeFaceIsTheBetterOne) {
  const Sight fine{640, 1, 1, {face(100, 100, 350, 350, 0.9F)}, {}};
  const Sight coarse{160, 0.25, 0.25, {face(105, 100, 350, 350, 0.8F)}, {}};
  const std::vector<faces::Face> all = merged({fine, coarse}, 0.3F);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].box.x, 100);
  EXPECT_TRUE(merged({}, 0.3F).empty());
}

TEST(FaceLooks, ClosenessIsAskedForBySmallFacesOrNone) {
  const Sight nothing{640, 1, 1, {}, {}};
  const Sight large{640, 1, 1, {face(0, 0, 100, 100, 0.9F)}, {}};
  const Sight doubtful{640, 1, 1, {face(0, 0, 100, 100, 0.9F)}, {face(200, 200, 12, 14, 0.35F)}};
  const Sight closer{1500, 2.3, 2.3, {}, {}};
  EXPECT_TRUE(hints_at_small_faces({nothing}));
  EXPECT_FALSE(hints_at_small_faces({large}));
  EXPECT_TRUE(hints_at_small_faces({doubtful}));
  EXPECT_FALSE(hints_at_small_faces({closer, nothing}));
}

TEST(FaceLooks, TurnedBack) {
  // A picture of 100 x 60 turned clockwise by 90 degrees is 60 x 100: its point (x, y) comes to (60 - y, x).
  faces::Face turned = face(60 - 25 - 8, 10, 8, 20, 0.9F);
  turned.points.nose = faces::Point{60 - 30, 15};
  turn_back(turned, 90, {100, 60});
  EXPECT_EQ(turned.box.x, 10);
  EXPECT_EQ(turned.box.y, 25);
  EXPECT_EQ(turned.box.width, 20);
  EXPECT_EQ(turned.box.height, 8);
  EXPECT_EQ(turned.points.nose->x, 15);
  EXPECT_EQ(turned.points.nose->y, 30);
  faces::Face half = face(10, 5, 20, 10, 0.9F);
  turn_back(half, 180, {100, 60});
  EXPECT_EQ(half.box.x, 70);
  EXPECT_EQ(half.box.y, 45);
  faces::Face other = face(25, 100 - 10 - 20, 8, 20, 0.9F);  // (x, y) comes to (y, 100 - x)
  turn_back(other, 270, {100, 60});
  EXPECT_EQ(other.box.x, 10);
  EXPECT_EQ(other.box.y, 25);
}

}  // namespace
}  // namespace sdx::vision
