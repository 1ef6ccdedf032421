#pragma once
// An open detector model: its family, its input size, and its session.

#include <filesystem>
#include <memory>
#include <sdx/faces.hpp>
#include <sdx/image.hpp>
#include <string>
#include <utility>
#include <vector>

#include "vision/detect/decode.h"
#include "vision/detect/family.h"

namespace sdx::vision {

class Network {
 public:
  // As FaceDetector::load().
  static Network open(const std::filesystem::path& model, const faces::DetectorOptions& options);

  const FamilyTraits& family() const { return *traits_; }
  // The input's size; 0: any multiple of family().input.multiple.
  int width() const { return width_; }
  int height() const { return height_; }
  const std::string& runtime() const { return runtime_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The runtime and providers that have answered so far: "native" or "ort", and the providers, joined by ','.
  std::pair<std::string, std::string> ran() const;

  // Candidates after suppression, in pixels of the picture, which must have three channels and fit into the input. Adds to
  // `times`. Thread-safe.
  std::vector<faces::Face> look(const media::Image& picture, float score, float nms, int top_k, faces::StageTimes& times) const;

 private:
  std::vector<faces::Face> decoded(const NamedValues& outputs, InputSize input, float score) const;

  const FamilyTraits* traits_ = nullptr;
  std::shared_ptr<const Session> session_;
  std::string input_;
  DataType dtype_ = DataType::float32;
  bool channels_last_ = false;
  int width_ = 0, height_ = 0;
  std::string runtime_;
  std::vector<std::string> warnings_;
};

}  // namespace sdx::vision
