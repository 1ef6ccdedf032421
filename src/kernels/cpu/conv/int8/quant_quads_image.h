#pragma once
// Convolutions of bytes that read their rows from the image, without gathering; internal to this folder.
//
// With stride 1, the bytes that one tap reads from a padded image are the image itself, one pixel further for each output. So
// tiles of rows are read from the image, at a different offset for each tap. Outputs continue over the padding between two lines,
// and the few in the padding are not stored: 2 of 58 at 56x56 pixels, 2 of 9 at 7x7. For 3x3 taps, gathering would write and read
// nine bytes for each byte of the image. With stride 2 the same applies to pairs of pixels, if the even lines come first and then
// the odd ones.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

struct QQuadImage {
  const std::uint8_t* pixels = nullptr;  // unsigned
  std::int64_t step = 0;                 // bytes from one output to the next
  std::int64_t line = 0, width = 0;      // outputs from one line to the next, and how many of them are stored
  std::int64_t outputs = 0;              // from the first to the last, including those that are not stored
  const std::int64_t* places = nullptr;  // offset of each kTileBytes of a row, in bytes from its beginning
};

// Whether tiles can read images of this shape directly and are faster for it.
bool qimage_takes(const ConvShape& s, const QEpilogue& epilogue);
// Pads one image. Valid until this thread's next call; all threads may read it.
QQuadImage qimage_of(const ConvShape& s, const std::uint8_t* x, bool is_signed, std::int32_t zero);

}  // namespace sdx::cpu
