#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sdx/faces.hpp>
#include <utility>

#include "base/error.h"
#include "media/resize.h"
#include "vision/detect/looks.h"
#include "vision/detect/network.h"
#include "vision/detect/shrink.h"

namespace sdx::faces {

using vision::Extent;
using vision::Sight;

namespace {

constexpr float kScore = 0.6F;
// With any_orientation: the score above which a face is certainly upright, and the factor by which a turned picture must show
// more. In pictures that lie the wrong way YuNet still finds half of the faces, with 0.6 to 0.87 and points as if they were
// upright; the right way up they have over 0.9.
constexpr float kUpright = 0.89F, kClearly = 1.05F;

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

  // The one size that the model or its user specifies; empty: the size depends on the picture.
  std::optional<Extent> frame() const;
  Extent framed(Extent picture) const;
  // The smallest face to search for, in pixels of a picture of this scale; 0: it depends on the faces found.
  double least_face(double scale) const;
  bool chooses_size() const { return !frame() && options.size == DetectorOptions::Size::automatic; }
  // Coordinates are in pixels of `picture`, which may already be reduced by `scale`.
  void find(const media::Image& picture, double scale, Detection& out) const;
  void find_in_looks(const media::Image& picture, double scale, Detection& out) const;
  void look_closer(const media::Image& picture, std::vector<Sight>& sights, Detection& out) const;
  std::vector<Face> look(const media::Image& scaled, float least, StageTimes& times) const {
    return network.look(scaled, least, nms, options.top_k, times);
  }
  Sight tiled_look(const media::Image& shown, Extent picture, int longest, StageTimes& times, media::Image& scaled) const;
  void try_turned(const media::Image& picture, double scale, Detection& out) const;
  Detection detect(const media::Image& picture, double scale) const;
};

double FaceDetector::Impl::least_face(double scale) const {
  if (options.min_face == 0) return options.thorough ? vision::kSmallestFace : 0;
  return options.min_face * scale * vision::kSmallestFace / network.family().smallest_face;
}

std::optional<Extent> FaceDetector::Impl::frame() const {
  if (network.width() > 0 && network.height() > 0) return Extent{network.width(), network.height()};
  if (options.size == DetectorOptions::Size::fixed) return Extent{options.width, options.height};
  return std::nullopt;
}

Extent FaceDetector::Impl::framed(Extent picture) const {
  if (const auto size = frame()) return network.family().input.squash ? *size : vision::fitted(picture, *size);
  return picture;
}

// `shown`: the picture, or a smaller version of it, in which faces are searched for. A pass larger than one tile finds faces that
// fit into the overlap of tiles.
Sight FaceDetector::Impl::tiled_look(const media::Image& shown, Extent picture, int longest, StageTimes& times,
                                     media::Image& scaled) const {
  const auto start = std::chrono::steady_clock::now();
  const Extent size = vision::with_longest(picture, longest);
  scaled = vision::scaled(shown, size.width, size.height);
  times.preprocess += ms_since(start);
  const double closeness = static_cast<double>(size.longest()) / vision::ordinary_look(picture);
  Sight sight{size.longest(), closeness, static_cast<double>(size.longest()) / picture.longest(), {}, {}};
  const float least = std::min(score, vision::kHint);
  const std::vector<vision::Tile> tiles = vision::tiles(size);
  for (const vision::Tile& t : tiles) {
    const bool whole = tiles.size() == 1;
    for (Face& face : look(whole ? scaled : media::crop(scaled, t.x, t.y, t.width, t.height), least, times)) {
      vision::transform(face, 1, 1, t.x, t.y);
      if (!whole && !vision::owns(t, face.box)) continue;
      vision::transform(face, static_cast<double>(picture.width) / size.width, static_cast<double>(picture.height) / size.height);
      (face.score >= score ? sight.faces : sight.doubtful).push_back(face);
    }
  }
  return sight;
}

// Adds finer looks as long as the finest hints at faces that are almost too small for it.
void FaceDetector::Impl::look_closer(const media::Image& picture, std::vector<Sight>& sights, Detection& out) const {
  const Extent extent = extent_of(picture);
  while (vision::hints_at_small_faces(sights)) {
    const int next = vision::closer_look(sights.front().longest, extent);
    out.small_faces = next == 0;
    if (next == 0) return;
    media::Image scaled;
    sights.insert(sights.begin(), tiled_look(picture, extent, next, out.times, scaled));
  }
}

void FaceDetector::Impl::find_in_looks(const media::Image& picture, double scale, Detection& out) const {
  const Extent extent = extent_of(picture);
  const double least = least_face(scale);
  std::vector<Sight> sights;
  media::Image scaled;
  for (const int longest : vision::looks(extent, least, network.family().close_ups_need_small_looks)) {
    media::Image smaller;
    sights.push_back(tiled_look(sights.empty() ? picture : scaled, extent, longest, out.times, smaller));
    scaled = std::move(smaller);
  }
  if (least == 0) look_closer(picture, sights, out);
  out.faces = vision::merged(sights, nms);
  out.smallest = network.family().smallest_face / sights.front().scale;
}

void FaceDetector::Impl::find(const media::Image& picture, double scale, Detection& out) const {
  if (chooses_size()) return find_in_looks(picture, scale, out);
  const auto start = std::chrono::steady_clock::now();
  const Extent extent = extent_of(picture), size = framed(extent);
  const bool squashed = network.family().input.squash;
  const media::Image scaled =
      squashed ? vision::squashed(picture, size.width, size.height) : vision::scaled(picture, size.width, size.height);
  out.times.preprocess += ms_since(start);
  out.faces = look(scaled, score, out.times);
  const double across = static_cast<double>(extent.width) / size.width, down = static_cast<double>(extent.height) / size.height;
  for (Face& face : out.faces) vision::transform(face, across, down);
  out.smallest = network.family().smallest_face * std::max(across, down);
}

// The direction with the most to be seen; it must be clearly more than in the picture as it is.
void FaceDetector::Impl::try_turned(const media::Image& picture, double scale, Detection& out) const {
  const Extent extent = extent_of(picture);
  Extent size = extent;
  if (chooses_size()) {  // no larger than the closest look is
    const double least = least_face(scale);
    const int closest = least > 0 ? vision::looks(extent, least, false).front() : vision::closest_look(extent);
    size = vision::with_longest(extent, closest);
  }
  const media::Image small = vision::scaled(picture, size.width, size.height);
  const double smaller = static_cast<double>(size.longest()) / extent.longest();
  float best = 0;
  for (const Face& face : out.faces) best += face.score * kClearly;
  for (const int degrees : {90, 270, 180}) {
    Detection found;
    found.times = out.times;
    find(vision::turned(small, degrees), scale * smaller, found);
    out.times = found.times;
    out.small_faces = out.small_faces || found.small_faces;
    float sum = 0;
    for (Face& face : found.faces) {
      sum += face.score;
      vision::turn_back(face, degrees, size);
      vision::transform(face, static_cast<double>(extent.width) / size.width, static_cast<double>(extent.height) / size.height);
      face.turned = degrees;
    }
    if (sum <= best) continue;
    best = sum;
    out.faces = std::move(found.faces);
    out.turned = degrees;
    out.smallest = found.smallest / smaller;
  }
}

Detection FaceDetector::Impl::detect(const media::Image& picture, double scale) const {
  Detection out;
  find(picture, scale, out);
  const auto upright = [](const Face& face) { return face.score >= kUpright; };
  if (options.any_orientation && std::none_of(out.faces.begin(), out.faces.end(), upright)) try_turned(picture, scale, out);
  const auto least = static_cast<float>(options.min_face * scale);
  if (!options.thorough) std::erase_if(out.faces, [&](const Face& f) { return std::max(f.box.width, f.box.height) < least; });
  std::tie(out.runtime, out.provider) = network.ran();
  return out;
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

Detection FaceDetector::detect(const media::Image& picture) const { return detect(picture, 1); }

Detection FaceDetector::detect(const media::Image& picture, double scale) const {
  media::check_pixels(picture);
  if (!(scale > 0 && scale <= 1))
    fail(ErrorCode::invalid_argument, "the scale of a picture must be over 0 and at most 1, received {}", scale);
  return impl_->detect(picture, scale);
}

const std::string& FaceDetector::decoder() const { return impl_->decoder; }
const std::string& FaceDetector::runtime() const { return impl_->network.runtime(); }
const std::vector<std::string>& FaceDetector::warnings() const { return impl_->network.warnings(); }

int FaceDetector::useful_size(int width, int height) const {
  if (width < 1 || height < 1) fail(ErrorCode::invalid_argument, "a picture cannot have {}x{} pixels", width, height);
  const Extent extent{width, height};
  int longest = extent.longest();
  if (impl_->chooses_size()) {
    const double least = impl_->least_face(1);
    longest = vision::looks(extent, least, false).front();
    if (least == 0) longest = std::max(longest, vision::closer_look(longest, extent));
  } else if (impl_->frame()) {
    const Extent size = impl_->framed(extent);
    const double k = std::max(static_cast<double>(size.width) / width, static_cast<double>(size.height) / height);
    longest = static_cast<int>(std::min<double>(extent.longest(), extent.longest() * k + 1));
  }
  return longest < extent.longest() ? longest : 0;
}

}  // namespace sdx::faces
