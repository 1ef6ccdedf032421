#pragma once
// A picture of a batch, decoded no further than is needed.

#include <string>

#include <sdx/faces.hpp>
#include <sdx/image.hpp>

#include "base/tools_api.h"

namespace sdx::vision::batch {

// A part of a picture: pixel (x, y) of the whole is pixel (x - left, y - top) of `image`.
struct PictureView {
  media::Image image;
  int left = 0, top = 0;
  media::Metadata metadata;

  faces::Face local(faces::Face face) const;
};

class SDX_TOOLS_API Picture {
 public:
  // `to_srgb`: view() applies colour profiles.
  Picture(std::string bytes, bool to_srgb);
  explicit Picture(media::Image frame);  // already decoded

  int width() const { return width_; }
  int height() const { return height_; }
  std::string_view format() const { return format_; }
  const std::string& bytes() const { return bytes_; }  // the file

  // The picture for the detector: its longer side may be as little as `useful` pixels (0: all of it), and `scale` is its size
  // relative to the original. Decodes.
  struct Shrunk {
    const media::Image* image;
    double scale;
  };
  Shrunk shrunk(int useful);

  // A part that contains `needed` as far as it is in the picture, or more. `open`: the part's edge must not be taken for that of
  // the picture, so the whole picture is decoded if `needed` reaches its edges.
  const PictureView& view(const faces::Box& needed, bool open);
  const PictureView& whole();

  double decode_ms() const { return decode_ms_; }

 private:
  void decode(const media::DecodeOptions& options);

  std::string bytes_;
  bool to_srgb_ = false;
  int width_ = 0, height_ = 0;
  std::string_view format_;
  bool have_ = false;  // view_ is there
  PictureView view_;
  double scale_ = 1;  // of view_
  double decode_ms_ = 0;
};

// The smallest box that holds both.
faces::Box joined(const faces::Box& a, const faces::Box& b);

}  // namespace sdx::vision::batch
