// Every decoder against its formula, written once more from the models' papers and code, over random tensors.
#include "vision/detect/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "support/errors.h"

namespace sdx::vision {
namespace {

using Row = std::vector<double>;  // x y width height, points, score

struct Made {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

class Random {
 public:
  Made tensor(std::string name, std::vector<std::int64_t> shape, float low, float high) {
    Made made{std::move(name), std::move(shape), {}};
    std::uniform_real_distribution<float> draw(low, high);
    std::int64_t count = 1;
    for (const std::int64_t d : made.shape) count *= d;
    for (std::int64_t i = 0; i < count; ++i) made.values.push_back(draw(engine_));
    return made;
  }

 private:
  std::mt19937 engine_{7};
};

std::vector<faces::Face> decoded(Family family, const std::vector<Made>& made, InputSize input, float score) {
  std::vector<Output> outputs;
  for (const Made& m : made) outputs.push_back({m.name, m.shape, m.values});
  return decode(family, outputs, input, score);
}

Row row_of(const faces::Face& face) {
  Row row{face.box.x, face.box.y, face.box.width, face.box.height};
  const faces::Points& p = face.points;
  for (const auto& point : {p.right_eye, p.left_eye, p.nose, p.right_mouth, p.left_mouth, p.mouth, p.right_ear, p.left_ear}) {
    if (!point) continue;
    row.push_back(point->x);
    row.push_back(point->y);
  }
  row.push_back(face.score);
  return row;
}

void expect_rows(const std::vector<faces::Face>& faces, const std::vector<Row>& expected) {
  ASSERT_GT(expected.size(), 5U) << "too few candidates to tell anything";
  ASSERT_EQ(faces.size(), expected.size());
  for (std::size_t i = 0; i < faces.size(); ++i) {
    const Row row = row_of(faces[i]);
    ASSERT_EQ(row.size(), expected[i].size());
    for (std::size_t k = 0; k < row.size(); ++k) EXPECT_NEAR(row[k], expected[i][k], 1e-3) << "face " << i << ", number " << k;
  }
}

std::string complaint(Family family, const std::vector<Made>& made, InputSize input) {
  return testing::error_of(ErrorCode::runtime_failure, [&] { decoded(family, made, input, 0.5F); });
}

std::vector<Made> yunet(Random& random, int width, int height, bool named) {
  std::vector<Made> out;
  for (const char* kind : {"cls", "obj", "bbox", "kps"}) {
    for (const int stride : {8, 16, 32}) {
      const std::int64_t cells = static_cast<std::int64_t>(width / stride) * (height / stride);
      const bool score = kind[0] == 'c' || kind[0] == 'o';
      const std::int64_t values = score ? 1 : kind[0] == 'b' ? 4 : 10;
      out.push_back(random.tensor((named ? kind : "o") + ("_" + std::to_string(named ? stride : static_cast<int>(out.size()))),
                                  {1, cells, values}, score ? -0.2F : -2.0F, score ? 1.2F : 2.0F));
    }
  }
  return out;
}

TEST(FaceDecoders, Yunet) {
  for (const bool named : {true, false}) {
    Random random;
    const std::vector<Made> made = yunet(random, 96, 64, named);
    std::vector<Row> expected;
    for (std::size_t level = 0; level < 3; ++level) {
      const double s = 8 << level;
      const int columns = 96 / (8 << level), rows = 64 / (8 << level);
      for (int i = 0; i < columns * rows; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int line = i / columns;
        const double c = i % columns, r = line;
        const double cls = std::min(1.0, std::max(0.0, static_cast<double>(made[level].values[at])));
        const double obj = std::min(1.0, std::max(0.0, static_cast<double>(made[3 + level].values[at])));
        const float *b = &made[6 + level].values[4 * at], *k = &made[9 + level].values[10 * at];
        if (std::sqrt(cls * obj) < 0.6) continue;
        const double w = std::exp(static_cast<double>(b[2])) * s, h = std::exp(static_cast<double>(b[3])) * s;
        Row row{(c + b[0]) * s - w / 2, (r + b[1]) * s - h / 2, w, h};
        for (int n = 0; n < 5; ++n) {
          row.push_back((k[2 * n] + c) * s);
          row.push_back((k[2 * n + 1] + r) * s);
        }
        row.push_back(std::sqrt(cls * obj));
        expected.push_back(row);
      }
    }
    expect_rows(decoded(Family::yunet, made, {96, 64}, 0.6F), expected);
  }
}

TEST(FaceDecoders, YunetDropsWhatIsNotFinite) {
  Random random;
  std::vector<Made> made = yunet(random, 32, 32, true);
  for (Made& m : made) std::fill(m.values.begin(), m.values.end(), m.name[0] == 'c' || m.name[0] == 'o' ? 1.0F : 0.0F);
  EXPECT_EQ(decoded(Family::yunet, made, {32, 32}, 0.6F).size(), 16U + 4 + 1);
  made[0].values[0] = std::numeric_limits<float>::quiet_NaN();  // cls_8
  made[6].values[4 + 2] = 200;                                  // bbox_8: exp gives infinity
  made[9].values[20] = std::numeric_limits<float>::infinity();  // kps_8
  made[6].values[12] = 1e30F;
  EXPECT_EQ(decoded(Family::yunet, made, {32, 32}, 0.6F).size(), 16U + 4 + 1 - 4);
}

TEST(FaceDecoders, CountsThatDoNotFitAreErrors) {
  Random random;
  std::vector<Made> made = yunet(random, 64, 64, true);
  EXPECT_NE(complaint(Family::yunet, made, {96, 64}).find("'cls_8' must hold 1 numbers for each of 12 x 8 cells"),
            std::string::npos);
  made[6].values.resize(7);
  EXPECT_NE(complaint(Family::yunet, made, {64, 64}).find("bbox_8"), std::string::npos);
  // One output is for a map that is rounded up, and another for one that is rounded down.
  std::vector<Made> mixed = yunet(random, 64, 64, true);
  mixed[1].values.resize(20, 1.0F);  // 5 x 4 cells
  EXPECT_NE(complaint(Family::yunet, mixed, {71, 64}).find("'obj_16' must hold 1 numbers for each of 5 x 4 cells, but holds 16"),
            std::string::npos);
  for (const FamilyTraits& t : families()) {
    EXPECT_NE(complaint(t.family, {}, {64, 64}).find("none"), std::string::npos) << t.name;
    EXPECT_FALSE(complaint(t.family, {random.tensor("x", {}, 0, 1)}, {64, 64}).empty());
    EXPECT_FALSE(
        complaint(t.family, {random.tensor("x", {1, 0, 4}, 0, 1), random.tensor("y", {1, 3, 2}, 0, 1)}, {64, 64}).empty());
  }
}

TEST(FaceDecoders, Scrfd) {
  for (const int levels : {3, 5}) {
    for (const bool points : {false, true}) {
      Random random;
      const int width = 256, height = 128, anchors = levels == 3 ? 2 : 1;
      std::vector<Made> made;
      for (int kind = 0; kind < (points ? 3 : 2); ++kind) {
        for (int level = 0; level < levels; ++level) {
          const std::int64_t cells = static_cast<std::int64_t>(width / (8 << level)) * (height / (8 << level)) * anchors;
          const std::int64_t values = kind == 0 ? 1 : kind == 1 ? 4 : 10;
          made.push_back(random.tensor(std::to_string(400 + made.size()), {cells, values}, kind == 2 ? -2.0F : 0.0F,
                                       kind == 0 ? 1.0F : 3.0F));
        }
      }
      std::vector<Row> expected;
      for (int level = 0; level < levels; ++level) {
        const int s = 8 << level;
        std::size_t i = 0;
        for (int r = 0; r < height / s; ++r) {
          for (int c = 0; c < width / s; ++c) {
            for (int a = 0; a < anchors; ++a, ++i) {
              const auto l = static_cast<std::size_t>(level), n = static_cast<std::size_t>(levels);
              const float score = made[l].values[i], *d = &made[n + l].values[4 * i];
              if (score < 0.9F) continue;
              const double x1 = (c - d[0]) * s, y1 = (r - d[1]) * s, x2 = (c + d[2]) * s, y2 = (r + d[3]) * s;
              Row row{x1, y1, x2 - x1, y2 - y1};
              for (std::size_t k = 0; points && k < 10; k += 2) {
                row.push_back((c + made[2 * n + l].values[10 * i + k]) * s);
                row.push_back((r + made[2 * n + l].values[10 * i + k + 1]) * s);
              }
              row.push_back(score);
              expected.push_back(row);
            }
          }
        }
      }
      expect_rows(decoded(Family::scrfd, made, {width, height}, 0.9F), expected);
    }
  }
}

// Both of these have boxes in fractions of the input, as their training code has.
struct Fraction {
  double x, y, w, h;
};

TEST(FaceDecoders, Yunet2022) {
  Random random;
  const int width = 160, height = 128;
  std::vector<Fraction> priors;
  const std::vector<std::vector<double>> sizes{{10, 16, 24}, {32, 48}, {64, 96}, {128, 192, 256}};
  for (std::size_t level = 0; level < 4; ++level) {
    const int step = 8 << level;
    for (int r = 0; r < height / step; ++r) {
      for (int c = 0; c < width / step; ++c) {
        for (const double size : sizes[level]) {
          priors.push_back({(c + 0.5) * step / width, (r + 0.5) * step / height, size / width, size / height});
        }
      }
    }
  }
  const auto n = static_cast<std::int64_t>(priors.size());
  const std::vector<Made> made{random.tensor("loc", {n, 14}, -3, 3), random.tensor("conf", {n, 2}, 0, 1),
                               random.tensor("iou", {n, 1}, -0.3F, 1.3F)};
  std::vector<Row> expected;
  for (std::size_t i = 0; i < priors.size(); ++i) {
    const double iou = std::min(1.0, std::max(0.0, static_cast<double>(made[2].values[i])));
    const double score = std::sqrt(static_cast<double>(made[1].values[2 * i + 1]) * iou);
    if (score < 0.8) continue;
    const Fraction& p = priors[i];
    const float* l = &made[0].values[14 * i];
    const double cx = (p.x + l[0] * 0.1 * p.w) * width, cy = (p.y + l[1] * 0.1 * p.h) * height;
    const double w = p.w * std::exp(l[2] * 0.1) * width, h = p.h * std::exp(l[3] * 0.2) * height;
    Row row{cx - w / 2, cy - h / 2, w, h};
    for (int k = 0; k < 5; ++k) {
      row.push_back((p.x + l[4 + 2 * k] * 0.1 * p.w) * width);
      row.push_back((p.y + l[5 + 2 * k] * 0.1 * p.h) * height);
    }
    row.push_back(score);
    expected.push_back(row);
  }
  expect_rows(decoded(Family::yunet2022, made, {width, height}, 0.8F), expected);
}

TEST(FaceDecoders, Retinaface) {
  Random random;
  const int width = 100, height = 70;  // map sizes are rounded up
  std::vector<Fraction> priors;
  for (const auto& [step, small, large] : {std::tuple{8, 16, 32}, {16, 64, 128}, {32, 256, 512}}) {
    for (int r = 0; r < std::ceil(height / static_cast<double>(step)); ++r) {
      for (int c = 0; c < std::ceil(width / static_cast<double>(step)); ++c) {
        for (const double size : {small, large})
          priors.push_back({(c + 0.5) * step / width, (r + 0.5) * step / height, size / width, size / height});
      }
    }
  }
  const auto n = static_cast<std::int64_t>(priors.size());
  const std::vector<Made> made{random.tensor("bbox", {1, n, 4}, -3, 3), random.tensor("classes", {1, n, 2}, 0, 1),
                               random.tensor("points", {1, n, 10}, -3, 3)};
  std::vector<Row> expected;
  for (std::size_t i = 0; i < priors.size(); ++i) {
    const float score = made[1].values[2 * i + 1], *l = &made[0].values[4 * i], *k = &made[2].values[10 * i];
    if (score < 0.8F) continue;
    const Fraction& p = priors[i];
    const double w = p.w * std::exp(l[2] * 0.2), h = p.h * std::exp(l[3] * 0.2);
    const double x1 = p.x + l[0] * 0.1 * p.w - w / 2, y1 = p.y + l[1] * 0.1 * p.h - h / 2;
    Row row{x1 * width, y1 * height, w * width, h * height};
    for (int j = 0; j < 10; j += 2) {
      row.push_back((p.x + k[j] * 0.1 * p.w) * width);
      row.push_back((p.y + k[j + 1] * 0.1 * p.h) * height);
    }
    row.push_back(score);
    expected.push_back(row);
  }
  expect_rows(decoded(Family::retinaface, made, {width, height}, 0.8F), expected);
}

TEST(FaceDecoders, Ultraface) {
  Random random;
  const std::vector<Made> made{random.tensor("scores", {1, 4420, 2}, 0, 1), random.tensor("boxes", {1, 4420, 4}, 0, 1)};
  std::vector<Row> expected;
  for (std::size_t i = 0; i < 4420; ++i) {
    const float* b = &made[1].values[4 * i];
    if (made[0].values[2 * i + 1] <= 0.9F || b[2] <= b[0] || b[3] <= b[1]) continue;  // no box without an area
    expected.push_back({b[0] * 320.0, b[1] * 240.0, (b[2] - b[0]) * 320.0, (b[3] - b[1]) * 240.0, made[0].values[2 * i + 1]});
  }
  expect_rows(decoded(Family::ultraface, made, {320, 240}, 0.9F), expected);
}

TEST(FaceDecoders, Centerface) {
  Random random;
  const std::int64_t rows = 8, columns = 16;
  const std::vector<Made> made{
      random.tensor("537", {1, 1, rows, columns}, 0, 1), random.tensor("538", {1, 2, rows, columns}, 0.5F, 2),
      random.tensor("539", {1, 2, rows, columns}, 0, 1), random.tensor("540", {1, 10, rows, columns}, 0, 1)};
  std::vector<Row> expected;
  const auto at = [&](std::size_t output, std::int64_t channel, std::int64_t r, std::int64_t c) {
    return static_cast<double>(made[output].values[static_cast<std::size_t>((channel * rows + r) * columns + c)]);
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (at(0, 0, r, c) <= 0.7F) continue;
      const double h = 4 * std::exp(at(1, 0, r, c)), w = 4 * std::exp(at(1, 1, r, c));
      const double x = std::max(0.0, (static_cast<double>(c) + at(2, 1, r, c) + 0.5) * 4 - w / 2);
      const double y = std::max(0.0, (static_cast<double>(r) + at(2, 0, r, c) + 0.5) * 4 - h / 2);
      Row row{x, y, std::min(x + w, 64.0) - x, std::min(y + h, 32.0) - y};
      for (int k = 0; k < 5; ++k) {
        row.push_back(x + at(3, 2 * k + 1, r, c) * w);
        row.push_back(y + at(3, 2 * k, r, c) * h);
      }
      row.push_back(at(0, 0, r, c));
      expected.push_back(row);
    }
  }
  expect_rows(decoded(Family::centerface, made, {64, 32}, 0.7F), expected);
}

TEST(FaceDecoders, Blazeface) {
  Random random;
  const Made boxes = random.tensor("regressors", {1, 896, 16}, 1, 60),
             scores = random.tensor("classificators", {1, 896, 1}, -200, 200);
  std::vector<Row> expected;
  std::size_t i = 0;
  for (const auto& [cells, anchors] : {std::pair{16, 2}, {8, 6}}) {
    for (int r = 0; r < cells; ++r) {
      for (int c = 0; c < cells; ++c) {
        for (int a = 0; a < anchors; ++a, ++i) {
          const double score = 1 / (1 + std::exp(-std::min(100.0, std::max(-100.0, static_cast<double>(scores.values[i])))));
          if (score < 0.6) continue;
          const double ax = (c + 0.5) / cells, ay = (r + 0.5) / cells;
          const float* v = &boxes.values[16 * i];
          const double w = v[2] / 128.0, h = v[3] / 128.0;
          Row row{(ax + v[0] / 128.0 - w / 2) * 128, (ay + v[1] / 128.0 - h / 2) * 128, w * 128, h * 128};
          for (int k = 4; k < 16; k += 2) {
            row.push_back((ax + v[k] / 128.0) * 128);
            row.push_back((ay + v[k + 1] / 128.0) * 128);
          }
          row.push_back(score);
          expected.push_back(row);
        }
      }
    }
  }
  const auto faces = decoded(Family::blazeface, {boxes, scores}, {128, 128}, 0.6F);
  expect_rows(faces, expected);
  // The same in two parts, as other exports have it.
  const auto part = [](const Made& m, std::int64_t first, std::int64_t count, std::int64_t values) {
    return Made{m.name + std::to_string(first),
                {1, count, values},
                {m.values.begin() + first * values, m.values.begin() + (first + count) * values}};
  };
  expect_rows(decoded(Family::blazeface,
                      {part(boxes, 512, 384, 16), part(boxes, 0, 512, 16), part(scores, 512, 384, 1), part(scores, 0, 512, 1)},
                      {128, 128}, 0.6F),
              expected);
}

}  // namespace
}  // namespace sdx::vision
