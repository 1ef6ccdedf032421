#pragma once
// The page's requests to the library, as functions: tests replace them.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sdx/faces.hpp>
#include <sdx/image.hpp>

namespace sdx::faces::page {

// The flags of `sdx faces crop`; empty ones have the command's defaults.
struct CropSettings {
  std::string preset, position, fill, shape, enhance, format;
  std::optional<int> width, height, quality;
  std::optional<double> face_height, offset_x, offset_y, radius;
  bool align_eyes = false;
};

struct File {
  std::string bytes;
  std::string type;    // "image/png"
  std::string ending;  // ".png"
};

struct Opened {
  std::shared_ptr<const media::Image> image;  // upright, whole
  std::string format;                         // "jpeg"
  std::size_t memory = 0;                     // bytes that all of it takes
  std::shared_ptr<void> more;                 // the backend's own
};

// Functions may be called by any number of threads at once, and throw sdx::Error.
struct Backend {
  std::string model, decoder;
  std::function<Opened(std::string bytes)> open;
  // Runtime::native or ort. Throws Error(provider_unavailable) with the reason where that runtime cannot be used.
  std::function<Detection(const Opened&, Runtime)> detect;
  std::function<Quality(const Opened&, const Face&)> judge;
  std::function<File(const Opened&, const Face&, const CropSettings&)> crop;
  std::vector<Preset> presets;
  std::vector<std::string> enhancements;
};

}  // namespace sdx::faces::page
