#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sdx/faces.hpp>
#include <utility>

#include "base/error.h"
#include "vision/detect/looks.h"
#include "vision/detect/network.h"
#include "vision/detect/shrink.h"

namespace sdx::faces {

using vision::Extent;
using vision::Sight;

namespace {

constexpr float kScore = 0.6F;

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void check_options(const DetectorOptions& o) {
  const auto within = [](const char* name, std::optional<float> v) {
    if (v && !(*v >= 0 && *v <= 1)) fail(ErrorCode::invalid_argument, "{} must be 0 to 1, received {}", name, *v);
  };
  within("score", o.score);
  within("nms", o.nms);
  if (o.min_face < 0) fail(ErrorCode::invalid_argument, "min_face must not be negative, received {}", o.min_face);
  if (o.size == DetectorOptions::Size::fixed && (o.width < 1 || o.height < 1 || o.width > 16384 || o.height > 16384)) {
    fail(ErrorCode::invalid_argument, "a size to look at must be 1x1 to 16384x16384, received {}x{}", o.width, o.height);
  }
}

Extent extent_of(const media::Image& picture) { return {picture.width, picture.height}; }

}  // namespace

struct FaceDetector::Impl {
  vision::Network network;
  DetectorOptions options;
  std::string decoder;
  float score = kScore, nms = 0;

  // The one size that the model, or whoever uses it, wants; empty: to be chosen by the picture.
  std::optional<Extent> frame() const;
  Extent framed(Extent picture) const;
  // In pixels of `picture`, which may be shrunk already.
  std::vector<Face> find(const media::Image& picture, StageTimes& times) const;
  std::vector<Face> find_in_looks(const media::Image& picture, StageTimes& times) const;
  std::vector<Face> look(const media::Image& scaled, float least, StageTimes& times) const {
    return network.look(scaled, least, nms, options.top_k, times);
  }
  Sight tiled_look(const media::Image& scaled, Extent picture, float least, StageTimes& times) const;
  void try_turned(const media::Image& picture, Detection& out) const;
};

std::optional<Extent> FaceDetector::Impl::frame() const {
  if (network.width() > 0 && network.height() > 0) return Extent{network.width(), network.height()};
  if (options.size == DetectorOptions::Size::fixed) return Extent{options.width, options.height};
  return std::nullopt;
}

Extent FaceDetector::Impl::framed(Extent picture) const {
  if (const auto size = frame()) return network.family().input.squash ? *size : vision::fitted(picture, *size);
  return picture;
}

// Larger looks than one tile see faces that fit into what tiles share.
Sight FaceDetector::Impl::tiled_look(const media::Image& scaled, Extent picture, float least, StageTimes& times) const {
  const double back_x = static_cast<double>(picture.width) / scaled.width,
               back_y = static_cast<double>(picture.height) / scaled.height;
  Sight sight{static_cast<double>(scaled.width) / picture.width, {}};
  if (picture.height > picture.width) sight.scale = static_cast<double>(scaled.height) / picture.height;
  const std::vector<vision::Tile> tiles = vision::tiles(extent_of(scaled));
  for (const vision::Tile& t : tiles) {
    const bool whole = tiles.size() == 1;
    for (Face& face : whole ? look(scaled, least, times) : look(vision::cut(scaled, t.x, t.y, t.width, t.height), least, times)) {
      vision::transform(face, 1, 1, t.x, t.y);
      const float x = face.box.x + face.box.width / 2, y = face.box.y + face.box.height / 2;
      const auto own = [](float v, int begin, int length) {
        return v >= static_cast<float>(begin) && v < static_cast<float>(begin + length);
      };
      const bool mine = whole || (own(x, t.own_x, t.own_width) && own(y, t.own_y, t.own_height));
      if (!mine || (!whole && std::max(face.box.width, face.box.height) > static_cast<float>(vision::kTileOverlap))) continue;
      vision::transform(face, back_x, back_y);
      sight.faces.push_back(face);
    }
  }
  return sight;
}

std::vector<Face> FaceDetector::Impl::find_in_looks(const media::Image& picture, StageTimes& times) const {
  const Extent extent = extent_of(picture);
  const bool small_too = network.family().close_ups_need_small_looks;
  std::vector<Sight> sights;
  media::Image current;
  for (const int longest : vision::looks(extent, options.min_face, small_too)) {
    const auto start = std::chrono::steady_clock::now();
    const Extent size = vision::with_longest(extent, longest);
    current = vision::scaled(sights.empty() ? picture : current, size.width, size.height);
    times.preprocess += ms_since(start);
    sights.push_back(tiled_look(current, extent, score, times));
  }
  return vision::merged(sights, nms);
}

std::vector<Face> FaceDetector::Impl::find(const media::Image& picture, StageTimes& times) const {
  if (!frame() && options.size == DetectorOptions::Size::automatic) return find_in_looks(picture, times);
  const auto start = std::chrono::steady_clock::now();
  const Extent extent = extent_of(picture), size = framed(extent);
  const media::Image scaled = vision::scaled(picture, size.width, size.height);
  times.preprocess += ms_since(start);
  std::vector<Face> faces = look(scaled, score, times);
  for (Face& face : faces) {
    vision::transform(face, static_cast<double>(extent.width) / size.width, static_cast<double>(extent.height) / size.height);
  }
  return faces;
}

// The direction with the most to be seen.
void FaceDetector::Impl::try_turned(const media::Image& picture, Detection& out) const {
  const Extent extent = extent_of(picture);
  const int longest = vision::looks(extent, options.min_face, false).front();
  const Extent size =
      frame() || options.size != DetectorOptions::Size::automatic ? extent : vision::with_longest(extent, longest);
  const media::Image small = vision::scaled(picture, size.width, size.height);
  float best = 0;
  for (const int degrees : {90, 270, 180}) {
    std::vector<Face> faces = find(vision::turned(small, degrees), out.times);
    float sum = 0;
    for (Face& face : faces) {
      sum += face.score;
      vision::turn_back(face, degrees, size);
      vision::transform(face, static_cast<double>(extent.width) / size.width, static_cast<double>(extent.height) / size.height);
    }
    if (sum <= best) continue;
    best = sum;
    out.faces = std::move(faces);
    out.turned = degrees;
  }
}

FaceDetector::FaceDetector(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
FaceDetector::FaceDetector(FaceDetector&&) noexcept = default;
FaceDetector& FaceDetector::operator=(FaceDetector&&) noexcept = default;
FaceDetector::~FaceDetector() = default;

FaceDetector FaceDetector::load(const std::filesystem::path& model, const DetectorOptions& options) {
  check_options(options);
  auto impl = std::make_shared<Impl>(Impl{vision::Network::open(model, options), options, "", kScore, 0});
  const vision::FamilyTraits& family = impl->network.family();
  impl->decoder = std::string(family.name);
  impl->score = options.score.value_or(kScore);
  impl->nms = options.nms.value_or(family.nms);
  return FaceDetector(std::move(impl));
}

Detection FaceDetector::detect(const media::Image& picture) const {
  vision::check_picture(picture);
  Detection out;
  out.faces = impl_->find(picture, out.times);
  if (out.faces.empty() && impl_->options.any_orientation) impl_->try_turned(picture, out);
  std::tie(out.runtime, out.provider) = impl_->network.ran();
  return out;
}

const std::string& FaceDetector::decoder() const { return impl_->decoder; }
const std::string& FaceDetector::runtime() const { return impl_->network.runtime(); }
const std::vector<std::string>& FaceDetector::warnings() const { return impl_->network.warnings(); }

int FaceDetector::useful_size(int width, int height) const {
  if (width < 1 || height < 1) fail(ErrorCode::invalid_argument, "a picture cannot have {}x{} pixels", width, height);
  const Extent extent{width, height};
  const bool chosen = !impl_->frame() && impl_->options.size == DetectorOptions::Size::automatic;
  int longest = extent.longest();
  if (chosen) {
    longest = vision::looks(extent, impl_->options.min_face, false).front();
  } else if (impl_->frame()) {
    const Extent size = impl_->framed(extent);
    const double k = std::max(static_cast<double>(size.width) / width, static_cast<double>(size.height) / height);
    longest = static_cast<int>(std::min<double>(extent.longest(), extent.longest() * k + 1));
  }
  return longest < extent.longest() ? longest : 0;
}

}  // namespace sdx::faces
