#include <sdx/faces.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <sdx/faces.hpp>

#include "session/c/c_interface.h"
#include "vision/names.h"

using sdx::ErrorCode;
using sdx::fail;
using sdx::faces::DetectorOptions;
using sdx::faces::Face;
using sdx::faces::Point;
using sdx::media::Image;
using sdx::session::guarded;
using sdx::session::require;

struct sdx_face_detector {
  sdx::faces::FaceDetector detector;
};
struct sdx_faces {
  sdx::faces::Detection found;
};

namespace {

template <class T>
T number(std::string_view key, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    fail(ErrorCode::invalid_argument, "{} is a number from {} to {}; received '{}'", key, least, most, text);
  }
  return value;
}

constexpr int kMostPixels = 65535;

void set_runtime(DetectorOptions& o, std::string_view word) {
  using sdx::faces::Runtime;
  static const std::map<std::string_view, Runtime> words{
      {"auto", Runtime::automatic}, {"native", Runtime::native}, {"ort", Runtime::ort}};
  const auto at = words.find(word);
  if (at == words.end()) fail(ErrorCode::invalid_argument, "runtime is auto, native or ort; received '{}'", word);
  o.runtime = at->second;
}

void set_size(DetectorOptions& o, std::string_view text) {
  using Size = DetectorOptions::Size;
  const std::size_t by = text.find('x');
  if (text == "auto" || text == "native") {
    o.size = text == "auto" ? Size::automatic : Size::native;
    return;
  }
  if (by == std::string_view::npos)
    fail(ErrorCode::invalid_argument, "size is auto, native or WIDTHxHEIGHT; received '{}'", text);
  o.size = Size::fixed;
  o.width = number("size", text.substr(0, by), 1, kMostPixels);
  o.height = number("size", text.substr(by + 1), 1, kMostPixels);
}

void set(DetectorOptions& o, std::string_view key, std::string_view value) {
  if (key == "runtime") {
    set_runtime(o, value);
  } else if (key == "size") {
    set_size(o, value);
  } else if (key == "score") {
    o.score = number(key, value, 0.0F, 1.0F);
  } else if (key == "nms") {
    o.nms = number(key, value, 0.0F, 1.0F);
  } else if (key == "top_k") {
    o.top_k = number(key, value, 1, 1'000'000);
  } else if (key == "min_face") {
    o.min_face = number(key, value, 0, kMostPixels);
  } else if (key == "any_orientation") {
    o.any_orientation = number(key, value, 0, 1) != 0;
  } else if (key == "thorough") {
    o.thorough = number(key, value, 0, 1) != 0;
  } else if (key == "decoder") {
    o.decoder = value;
  } else {
    fail(ErrorCode::invalid_argument,
         "a detector has no setting '{}'; known: runtime, size, score, nms, top_k, min_face, any_orientation, thorough, decoder",
         key);
  }
}

void set_all(DetectorOptions& o, std::string_view settings) {
  while (!settings.empty()) {
    const std::string_view one = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(settings.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      fail(ErrorCode::invalid_argument, "settings are key=value, separated by commas; received '{}'", one);
    }
    set(o, one.substr(0, equals), one.substr(equals + 1));
  }
}

Image image_of(const uint8_t* pixels, int width, int height, int channels) {
  Image image = Image::blank(width, height, channels);
  std::memcpy(image.pixels.data(), &require(pixels, "pixels"), image.pixels.size());
  return image;
}

constexpr std::size_t kFive = 5;

sdx_face plain(const Face& face) {
  sdx_face out{face.box.x, face.box.y, face.box.width, face.box.height, face.score, face.points.complete() ? 1 : 0,
               {},         face.turned};
  for (std::size_t i = 0; out.has_points != 0 && i < kFive; ++i) {
    const Point& p = *(face.points.*sdx::vision::kPoints.at(i).member);
    out.points[i][0] = p.x;
    out.points[i][1] = p.y;
  }
  return out;
}

Face face_of(const sdx_face& plain) {
  Face face{{plain.x, plain.y, plain.width, plain.height}, plain.score, {}};
  for (std::size_t i = 0; plain.has_points != 0 && i < kFive; ++i) {
    face.points.*sdx::vision::kPoints.at(i).member = Point{plain.points[i][0], plain.points[i][1]};
  }
  const bool turned = plain.turned == 90 || plain.turned == 180 || plain.turned == 270;
  face.turned = turned ? plain.turned : 0;
  return face;
}

}  // namespace

extern "C" {

sdx_status sdx_face_detector_open(const char* model, const sdx_options* options, const char* settings,
                                  sdx_face_detector** detector) {
  return guarded([&] {
    DetectorOptions o;
    if (options != nullptr) o.session = options->options;
    if (settings != nullptr) set_all(o, settings);
    sdx_face_detector*& out = require(detector, "detector");
    out = new sdx_face_detector{sdx::faces::FaceDetector::load(&require(model, "model"), o)};
  });
}

void sdx_face_detector_free(sdx_face_detector* detector) { delete detector; }

sdx_status sdx_face_detector_detect(const sdx_face_detector* detector, const uint8_t* pixels, int width, int height, int channels,
                                    sdx_faces** faces) {
  return guarded([&] {
    sdx_faces*& out = require(faces, "faces");
    out = new sdx_faces{require(detector, "detector").detector.detect(image_of(pixels, width, height, channels))};
  });
}

sdx_status sdx_face_detector_detect_file(const sdx_face_detector* detector, const char* path, sdx_faces** faces) {
  return guarded([&] {
    sdx_faces*& out = require(faces, "faces");
    out = new sdx_faces{require(detector, "detector").detector.detect(sdx::media::read_image(&require(path, "path")))};
  });
}

size_t sdx_faces_count(const sdx_faces* faces) { return faces == nullptr ? 0 : faces->found.faces.size(); }

sdx_status sdx_faces_get(const sdx_faces* faces, size_t index, sdx_face* face) {
  return guarded([&] {
    const std::vector<Face>& all = require(faces, "faces").found.faces;
    if (index >= all.size()) fail(ErrorCode::invalid_argument, "there are {} faces; received index {}", all.size(), index);
    require(face, "face") = plain(all[index]);
  });
}

int sdx_faces_turned(const sdx_faces* faces) { return faces == nullptr ? 0 : faces->found.turned; }
const char* sdx_faces_runtime(const sdx_faces* faces) { return faces == nullptr ? "" : faces->found.runtime.c_str(); }
const char* sdx_faces_provider(const sdx_faces* faces) { return faces == nullptr ? "" : faces->found.provider.c_str(); }
void sdx_faces_free(sdx_faces* faces) { delete faces; }

sdx_status sdx_face_crop_file(const char* picture, const sdx_face* face, const char* preset, const char* output) {
  return guarded([&] {
    const sdx::faces::CropOptions options = sdx::faces::preset(&require(preset, "preset"));
    const Image whole = sdx::media::read_image(&require(picture, "picture"));
    sdx::media::write_image(&require(output, "output"), sdx::faces::crop(whole, face_of(require(face, "face")), options));
  });
}

sdx_status sdx_face_align(const uint8_t* pixels, int width, int height, int channels, const sdx_face* face, int size,
                          uint8_t* out) {
  return guarded([&] {
    const Image aligned = sdx::faces::align(image_of(pixels, width, height, channels), face_of(require(face, "face")), size);
    uint8_t* to = &require(out, "out");
    const auto channel_count = static_cast<std::size_t>(aligned.channels);
    for (std::size_t i = 0; i < aligned.pixels.size() / channel_count; ++i) {
      for (std::size_t c = 0; c < 3; ++c) to[i * 3 + c] = aligned.pixels[i * channel_count + (channel_count < 3 ? 0 : c)];
    }
  });
}

}  // extern "C"
