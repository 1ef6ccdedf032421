// Finds faces in a picture with a CenterFace model (arXiv:1911.03599) and writes the picture with the faces marked.
//
//   sdx_example_faces centerface.onnx picture.jpg [marked.png]
//
// The model takes RGB pixels, 0..255, [1,3,H,W] with H and W multiples of 32, and returns maps of a quarter of that size: a score
// for "the centre of a face is here", the logarithm of the face's height and width in quarter pixels, the centre's offset within
// its cell, and five landmarks relative to the box.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sdx/image.hpp>
#include <sdx/sdx.hpp>
#include <vector>

namespace {

struct Face {
  float score, left, top, right, bottom;  // in the picture's pixels
  float landmark_x[5], landmark_y[5];
};

float overlap(const Face& a, const Face& b) {
  const float w = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (w <= 0 || h <= 0) return 0;
  const auto area = [](const Face& f) { return (f.right - f.left) * (f.bottom - f.top); };
  return w * h / (area(a) + area(b) - w * h);
}

constexpr float kStride = 4;

std::vector<Face> decode(const sdx::NamedValues& maps, float scale_x, float scale_y, float threshold) {
  const sdx::Tensor& heat = maps[0].value.tensor();
  const std::int64_t height = heat.dim(2), width = heat.dim(3), plane = height * width;
  const auto score = heat.values<float>();
  const auto size = maps[1].value.tensor().values<float>();
  const auto offset = maps[2].value.tensor().values<float>();
  const auto marks = maps[3].value.tensor().values<float>();
  std::vector<Face> found;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const auto i = static_cast<std::size_t>(y * width + x);
      if (score[i] < threshold) continue;
      const auto at = [&](std::span<const float> map, std::int64_t channel) {
        return map[i + static_cast<std::size_t>(channel * plane)];
      };
      const float h = std::exp(at(size, 0)) * kStride, w = std::exp(at(size, 1)) * kStride;
      const float top = (static_cast<float>(y) + at(offset, 0) + 0.5F) * kStride - h / 2;
      const float left = (static_cast<float>(x) + at(offset, 1) + 0.5F) * kStride - w / 2;
      Face f{score[i], left * scale_x, top * scale_y, (left + w) * scale_x, (top + h) * scale_y, {}, {}};
      for (std::int64_t k = 0; k < 5; ++k) {
        f.landmark_y[k] = (at(marks, 2 * k) * h + top) * scale_y;
        f.landmark_x[k] = (at(marks, 2 * k + 1) * w + left) * scale_x;
      }
      found.push_back(f);
    }
  }
  // Each face lights up several neighbouring cells: the best of those that overlap stays.
  std::sort(found.begin(), found.end(), [](const Face& a, const Face& b) { return a.score > b.score; });
  std::vector<Face> kept;
  for (const Face& f : found) {
    if (std::none_of(kept.begin(), kept.end(), [&](const Face& k) { return overlap(f, k) > 0.3F; })) kept.push_back(f);
  }
  return kept;
}

void mark(sdx::media::Image& picture, const Face& f) {
  const auto px = [](float v) { return static_cast<int>(std::lround(v)); };
  draw_rectangle(picture, px(f.left), px(f.top), px(f.right - f.left), px(f.bottom - f.top), {40, 220, 80}, 3);
  for (int k = 0; k < 5; ++k) draw_disc(picture, px(f.landmark_x[k]), px(f.landmark_y[k]), 3, {240, 60, 60});
}

int run(const char* model_path, const char* picture_path, const char* marked_path) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  sdx::media::Image picture = sdx::media::read_image(picture_path);
  const auto start = Clock::now();
  const sdx::Session session = sdx::Session::open(model_path);

  sdx::Preprocessing prepare;
  prepare.normalize = "none";
  prepare.width = (picture.width + 31) / 32 * 32;
  prepare.height = (picture.height + 31) / 32 * 32;
  const sdx::Tensor input = to_tensor(picture, prepare);
  const std::string& name = session.inputs().front().name;

  const auto opened = Clock::now();
  sdx::NamedValues maps = session.run({{name, input}});
  const auto first = Clock::now();
  maps = session.run({{name, input}});
  const auto second = Clock::now();

  const auto faces = decode(maps, static_cast<float>(picture.width) / static_cast<float>(prepare.width),
                            static_cast<float>(picture.height) / static_cast<float>(prepare.height), 0.5F);
  std::printf("%s, %dx%d: %zu face%s\n", picture_path, picture.width, picture.height, faces.size(), faces.size() == 1 ? "" : "s");
  for (const Face& f : faces) {
    std::printf("  score %.3f  box %.0f,%.0f - %.0f,%.0f  eyes %.0f,%.0f %.0f,%.0f\n", static_cast<double>(f.score),
                static_cast<double>(f.left), static_cast<double>(f.top), static_cast<double>(f.right),
                static_cast<double>(f.bottom), static_cast<double>(f.landmark_x[0]), static_cast<double>(f.landmark_y[0]),
                static_cast<double>(f.landmark_x[1]), static_cast<double>(f.landmark_y[1]));
    mark(picture, f);
  }
  const sdx::Report report = session.report();
  std::string providers;
  for (const std::string& p : report.providers) providers += (providers.empty() ? "" : ", ") + p;
  std::printf("provider %s; opened in %.1f ms, first result %.1f ms later, next in %.1f ms\n", providers.c_str(),
              ms(opened - start), ms(first - opened), ms(second - first));
  if (marked_path != nullptr) {
    sdx::media::write_image(marked_path, picture);
    std::printf("marked picture: %s\n", marked_path);
  }
  return faces.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: %s centerface.onnx picture.jpg [marked.png]\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
