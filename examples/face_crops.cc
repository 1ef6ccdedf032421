// Finds the faces of a picture with any detector model, and writes each as a passport photograph.
//
//   sdx_example_face_crops yunet.onnx photo.jpg [folder]

#include <cstdio>
#include <sdx/faces.hpp>

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s DETECTOR PICTURE [FOLDER]\n", argv[0]);
    return 2;
  }
  namespace faces = sdx::faces;
  const faces::FaceDetector detector = faces::FaceDetector::load(argv[1], {.session = {.threads = 2}});
  const sdx::media::Image picture = sdx::media::read_image(argv[2]);
  const faces::Detection found = detector.detect(picture);
  std::printf("%zu faces by %s (%s, %s) in %.1f ms\n", found.faces.size(), detector.decoder().c_str(), found.runtime.c_str(),
              found.provider.c_str(), found.times.preprocess + found.times.inference + found.times.decode);
  int number = 0;
  for (const faces::Face& face : found.faces) {
    const faces::Quality quality = faces::judge(picture, face);
    std::printf("  %.0f x %.0f pixels at (%.0f, %.0f), score %.3f, sharpness %.0f\n", static_cast<double>(face.box.width),
                static_cast<double>(face.box.height), static_cast<double>(face.box.x), static_cast<double>(face.box.y),
                static_cast<double>(face.score), quality.sharpness);
    ++number;
    if (argc < 4) continue;
    const auto file = std::filesystem::path(argv[3]) / ("face" + std::to_string(number) + ".png");
    sdx::media::write_image(file, faces::crop(picture, face, faces::preset("passport")));
  }
  return found.faces.empty() ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
