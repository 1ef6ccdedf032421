#pragma once
// One picture and one face of it at a time, without files: what a batch and the page have in common, so that both give the same
// bytes. Exported for libsdx_faces_page.so of the same build.

#include <string_view>

#include <sdx/faces.hpp>
#include <sdx/image.hpp>

#include "base/tools_api.h"
#include "vision/batch/picture.h"
#include "vision/batch/settings.h"

namespace sdx::vision::batch {

// Coordinates are those of the whole picture, though the detector may look at a smaller one.
SDX_TOOLS_API faces::Detection find_faces(Picture& picture, const faces::FaceDetector& detector);

// The crop, enhanced as --enhance says. `width` and `height` are those of the whole picture; `face` is in its coordinates.
SDX_TOOLS_API media::Image cut_face(const PictureView& view, int width, int height, const faces::Face& face,
                                    const Settings& settings);

// The format of a picture's results: the picture's own if it can be written. `format`: as in media::DecodedImage.
SDX_TOOLS_API media::FileFormat own_format(std::string_view format, int channels);
SDX_TOOLS_API media::EncodeOptions encoding(const PictureView& view, media::FileFormat format, const Settings& settings);

}  // namespace sdx::vision::batch
