#include "kernels/cpu/conv/int8/quant_quads_image.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/quant_quads.h"
#include "kernels/cpu/conv/int8/quant_quads_amx.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;  // of a padded image
constexpr std::int64_t kCopyGrain = 64 * 1024;              // bytes

// The number of outputs from one line to the next.
std::int64_t line_of(const ConvShape& s) { return up_div(reach(s, 2), s.stride[2]); }

std::int64_t steps_of(const ConvShape& s) { return volume(s.kernel) * s.in_channels / kTileBytes; }

void flip_signs(std::uint8_t* bytes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) bytes[i] ^= 0x80;
}

}  // namespace

bool qimage_takes(const ConvShape& s, const QEpilogue& epilogue) {
  if (!gives_bytes(epilogue) || !qquad_by_tiles(s.in_channels)) return false;
  if (s.groups != 1 || s.in_channels % kTileBytes != 0 || volume(s.kernel) == 1) return false;
  if (s.kernel[0] != 1 || s.in[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  if (s.stride[1] > 2 || s.stride[2] > 2 || s.pad[1] < 0 || s.pad[2] < 0) return false;
  // At 7x7 pixels, 7 of 9 outputs are stored. That is no slower than gathering: 61 outputs take two blocks of 32, and so do 49
  // gathered rows.
  return s.out[2] * 10 >= line_of(s) * 7 && reach(s, 1) * reach(s, 2) * s.in_channels <= kMostBytes;
}

QQuadImage qimage_of(const ConvShape& s, const std::uint8_t* x, bool is_signed, std::int32_t zero) {
  QQuadImage image;
  image.step = s.stride[2] * s.in_channels;
  image.line = line_of(s);
  image.width = s.out[2];
  image.outputs = (s.out[1] - 1) * image.line + s.out[2];
  // Lines of the same phase are adjacent.
  const std::int64_t phases = s.stride[1], phase_lines = up_div(reach(s, 1), phases), lines = phases * phase_lines;
  const std::int64_t pixels_of_line = image.line * s.stride[2], line_bytes = pixels_of_line * s.in_channels, steps = steps_of(s);
  auto* pixels = reinterpret_cast<std::uint8_t*>(thread_scratch(4, to_size(up_div(lines * line_bytes, 4) + 2 * steps)));
  auto* places = reinterpret_cast<std::int64_t*>(pixels + lines * line_bytes);
  const auto place_of = [&](std::int64_t line) { return (line % phases * phase_lines + line / phases) * line_bytes; };
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t tap = i * kTileBytes / s.in_channels, channel = i * kTileBytes % s.in_channels;
    const std::int64_t row = tap / s.kernel[2] * s.dilation[1], column = tap % s.kernel[2] * s.dilation[2];
    places[i] = place_of(row) + column * s.in_channels + channel;
  }
  // The pixels of a padded line that lie in the image.
  const std::int64_t before = std::min(s.pad[2], pixels_of_line), inside = std::min(s.in[2], pixels_of_line - before);
  const auto copy_line = [&](std::int64_t line) {
    std::uint8_t* to = pixels + place_of(line);
    const std::int64_t from = line - s.pad[1];
    if (from < 0 || from >= s.in[1]) {
      std::memset(to, zero & 0xFF, to_size(line_bytes));
    } else {
      std::memset(to, zero & 0xFF, to_size(before * s.in_channels));
      std::memcpy(to + before * s.in_channels, x + from * s.in[2] * s.in_channels, to_size(inside * s.in_channels));
      const std::int64_t done = (before + inside) * s.in_channels;
      std::memset(to + done, zero & 0xFF, to_size(line_bytes - done));
    }
    if (is_signed) flip_signs(to, line_bytes);
  };
  parallel_for(lines, up_div(kCopyGrain, line_bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) copy_line(line);
  });
  image.pixels = pixels;
  image.places = places;
  return image;
}

}  // namespace sdx::cpu
