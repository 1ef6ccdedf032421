#include "vision/batch/picture.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "vision/names.h"

namespace sdx::vision::batch {
namespace {

using faces::Box;

// A JPEG with fewer pixels is decoded whole at once: a pass over a shrunken picture and a pass over the faces cost as much
// together. Larger pictures are decoded in two passes for the sake of memory, or because many show no face.
constexpr double kLargePicture = 6e6;
// If faces take a larger share of a picture than this, the second pass decodes the whole picture.
constexpr double kMostOfPicture = 0.6;

}  // namespace

faces::Face PictureView::local(faces::Face f) const {
  const auto x = static_cast<float>(left), y = static_cast<float>(top);
  f.box.x -= x;
  f.box.y -= y;
  change_points(f.points, [&](faces::Point p) { return faces::Point{p.x - x, p.y - y}; });
  return f;
}

Picture::Picture(std::string bytes, bool to_srgb) : bytes_(std::move(bytes)), to_srgb_(to_srgb) {
  const media::ImageInfo info = media::probe_image(std::as_bytes(std::span<const char>(bytes_.data(), bytes_.size())));
  width_ = info.width;
  height_ = info.height;
  format_ = info.format;
}

Picture::Picture(media::Image frame) : width_(frame.width), height_(frame.height), format_("jpeg"), have_(true) {
  view_.image = std::move(frame);
}

void Picture::decode(const media::DecodeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  view_ = {};  // the memory of an earlier part is not needed any more
  media::DecodedImage decoded =
      media::decode_picture(std::as_bytes(std::span<const char>(bytes_.data(), bytes_.size())), options);
  width_ = decoded.full_width;
  height_ = decoded.full_height;
  scale_ = decoded.scale;
  view_ = {std::move(decoded.image), decoded.region.x, decoded.region.y, std::move(decoded.metadata)};
  have_ = true;
  decode_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Picture::Shrunk Picture::shrunk(int useful) {
  if (!have_) {
    const bool large = static_cast<double>(width_) * height_ >= kLargePicture;
    media::DecodeOptions options;
    options.to_srgb = to_srgb_;
    if (format_ == "jpeg" && large && useful > 0) options.at_least = useful;
    decode(options);
  }
  return {&view_.image, scale_};
}

const PictureView& Picture::whole() {
  const bool is_whole =
      have_ && scale_ == 1 && view_.left == 0 && view_.top == 0 && view_.image.width == width_ && view_.image.height == height_;
  if (!is_whole) {
    media::DecodeOptions options;
    options.to_srgb = to_srgb_;
    decode(options);
  }
  return view_;
}

const PictureView& Picture::view(const Box& needed, bool open) {
  if (have_ && scale_ == 1) return view_;
  const Box box{std::floor(needed.x) - 2, std::floor(needed.y) - 2, std::ceil(needed.width) + 5, std::ceil(needed.height) + 5};
  const auto w = static_cast<float>(width_), h = static_cast<float>(height_);
  const bool inside = box.x >= 0 && box.y >= 0 && box.x + box.width <= w && box.y + box.height <= h;
  const bool much = static_cast<double>(box.width) * box.height > kMostOfPicture * width_ * height_;
  if ((open && !inside) || much || format_ != "jpeg") return whole();
  const float left = std::clamp(box.x, 0.F, w - 1), top = std::clamp(box.y, 0.F, h - 1);
  const float right = std::clamp(box.x + box.width, left + 1, w), bottom = std::clamp(box.y + box.height, top + 1, h);
  media::DecodeOptions options;
  options.to_srgb = to_srgb_;
  options.region = media::Rectangle{static_cast<int>(left), static_cast<int>(top), static_cast<int>(right - left),
                                    static_cast<int>(bottom - top)};
  decode(options);
  return view_;
}

Box joined(const Box& a, const Box& b) {
  const float left = std::min(a.x, b.x), top = std::min(a.y, b.y);
  return {left, top, std::max(a.x + a.width, b.x + b.width) - left, std::max(a.y + a.height, b.y + b.height) - top};
}

}  // namespace sdx::vision::batch
