// ImageDecoder: ai.onnx 20, 26.

#include "media/image.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct ImageDecoderAttrs {
  std::string_view pixel_format = "RGB";

  void fields(auto& f) { f("pixel_format", pixel_format); }
};

enum class PixelFormat { rgb, bgr, grey };

PixelFormat pixel_format(const ImageDecoderAttrs& attr) {
  const std::string_view text = attr.pixel_format;
  if (text == "RGB") return PixelFormat::rgb;
  if (text == "BGR") return PixelFormat::bgr;
  if (text == "Grayscale") return PixelFormat::grey;
  fail(ErrorCode::invalid_model, "'pixel_format' must be RGB, BGR or Grayscale, received {}", text);
}

std::int64_t channels_of(PixelFormat format) { return format == PixelFormat::grey ? 1 : 3; }

void infer_image_decoder(InferContext& c) {
  const PixelFormat format = pixel_format(parse<ImageDecoderAttrs>(c));
  const SymShape* in = c.shape(0);
  if (in != nullptr && in->size() != 1) c.fail("the encoded image must have rank 1, received {}", to_string(*in));
  c.output(0, DataType::uint8, SymShape{Dim(), Dim(), Dim(channels_of(format))});
}

void write_pixels(const media::Image& image, PixelFormat format, std::uint8_t* to) {
  const std::uint8_t* from = image.pixels.data();
  const std::int64_t count = std::int64_t{image.width} * image.height;
  const int second = image.channels == 1 ? 0 : 1, third = image.channels == 1 ? 0 : 2;
  for (std::int64_t i = 0; i < count; ++i, from += image.channels) {
    const unsigned red = from[0], green = from[second], blue = from[third];
    if (format == PixelFormat::grey) {
      // ITU-R BT.601 luma in 16-bit fixed point, rounded, as the reference implementation's library does.
      *to++ = static_cast<std::uint8_t>((red * 19595U + green * 38470U + blue * 7471U + 0x8000U) >> 16);
      continue;
    }
    const bool bgr = format == PixelFormat::bgr;
    *to++ = static_cast<std::uint8_t>(bgr ? blue : red);
    *to++ = static_cast<std::uint8_t>(green);
    *to++ = static_cast<std::uint8_t>(bgr ? red : blue);
  }
}

void run_image_decoder(OpContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() != 1) c.fail("the encoded image must have rank 1, received {}", in.type_string());
  const PixelFormat format = pixel_format(parse<ImageDecoderAttrs>(c));
  media::Image image;
  try {
    image = media::decode_image({static_cast<const std::byte*>(in.data()), in.bytes()}, {.upright = false});
  } catch (const Error& e) {
    // Source: ONNX ImageDecoder-20: "if it can't decode for any reason, it will return an empty matrix".
    // That a library is missing is no fault of the image's.
    if (e.code() == ErrorCode::out_of_memory || e.code() == ErrorCode::io) throw;
    image = {};
  }
  Tensor& out = c.output(0, DataType::uint8, {image.height, image.width, channels_of(format)});
  if (out.size() != 0) write_pixels(image, format, static_cast<std::uint8_t*>(out.mutable_data()));
}

}  // namespace

void register_image_decoder(OpTable& t) {
  t.add(OpDef("ImageDecoder", 20)
            .in("encoded_stream", "T1", bit(DataType::uint8))
            .out("image", "T2", bit(DataType::uint8))
            .attrs<ImageDecoderAttrs>()
            .infer_with(infer_image_decoder)
            .run_with(run_image_decoder));
}

}  // namespace sdx::ops
